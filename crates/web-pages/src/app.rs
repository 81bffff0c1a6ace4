//! State of every handler of a page.

use crate::show::rendered::Rendered;
use std::ops::Deref;
use std::sync::Arc;

/// The state of the server, and the cache of rendered texts.
#[derive(Clone)]
pub(crate) struct App {
    web: abide_web::App,
    pub(crate) rendered: Arc<Rendered>,
}

impl App {
    pub(crate) fn new(web: abide_web::App) -> Self {
        Self { web, rendered: Arc::new(Rendered::new()) }
    }
}

impl Deref for App {
    type Target = abide_web::App;

    fn deref(&self) -> &abide_web::App {
        &self.web
    }
}
