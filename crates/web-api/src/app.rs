//! State of every handler of the API.

use crate::limit::{ApiLimits, Meter};
use crate::streams::Streams;
use std::ops::Deref;
use std::sync::Arc;

/// State of the server, with the counters of the API.
#[derive(Clone)]
pub(crate) struct App {
    web: abide_web::App,
    pub(crate) api: Arc<Meter>,
    pub(crate) streams: Streams,
}

impl App {
    pub(crate) fn new(web: abide_web::App, limits: ApiLimits) -> Self {
        let api = Arc::new(Meter::new(limits, web.forge.clock().clone()));
        Self { web, api, streams: Streams::new(limits) }
    }
}

impl Deref for App {
    type Target = abide_web::App;

    fn deref(&self) -> &abide_web::App {
        &self.web
    }
}
