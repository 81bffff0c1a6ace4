//! Looking names up.

use futures_util::future::BoxFuture;
use std::io;
use std::net::IpAddr;

/// Finds the addresses of a name. Asked once per connection; what it says then is what is connected to.
pub trait Resolver: Send + Sync + 'static {
    /// Every address of `name`.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// As the system does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    #[expect(clippy::disallowed_methods, reason = "this is what everything else looks names up with")]
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}
