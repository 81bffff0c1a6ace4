//! Name look-ups.

use futures_util::future::BoxFuture;
use std::io;
use std::net::IpAddr;

/// Finds the addresses of a name. Called once per connection; the result is what the gate connects to.
pub trait Resolver: Send + Sync + 'static {
    /// Every address of `name`.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    #[expect(clippy::disallowed_methods, reason = "this is what everything else looks names up with")]
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}
