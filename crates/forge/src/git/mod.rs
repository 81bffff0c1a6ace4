//! Fetch and push, for every transport.
//!
//! * [`fetch`]: refs from a snapshot in memory, packs streamed through git.
//! * [`push`]: our own receive pipeline; `push/apply.rs` is the part that must reach its end.
//! * [`snapshots`]: refs by generation, [`RefList`] sends them to clients. [`reconcile`]: puts right what a crash left. [`maintain`]: keeps repositories
//!   quick.

mod drain;
pub mod fetch;
pub mod maintain;
pub mod push;
pub mod reconcile;
mod ref_list;
pub mod snapshots;

use crate::open::{self, RepoLocator};
use crate::{Fault, Forge};
use abide_core::{RefName, RepoId};
use abide_git::bare;
use abide_store::repos::Repo;

/// Our user agent towards git clients.
pub(crate) const AGENT: &str = concat!("abide/", env!("CARGO_PKG_VERSION"));

pub use abide_git::ProtocolVersion;
pub use abide_git::advertise::service as service_header;
pub use abide_git::report::error_packet;
pub use drain::drain;
pub use ref_list::RefList;

/// Transport of a fetch or push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Http,
    Ssh,
    /// The server itself, on behalf of a user.
    Server,
}

impl Transport {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::Server => "server",
        }
    }
}

/// Hint for a client that used an old name: it keeps working, but there is a current one.
fn moved_hint(forge: &Forge, locator: &RepoLocator, repo: &Repo, transport: Transport) -> Option<String> {
    let settings = forge.settings();
    let base = match transport {
        Transport::Ssh => &settings.ssh_url,
        Transport::Http | Transport::Server => &settings.public_url,
    };
    open::moved(locator, repo).then(|| format!("this repository moved to {base}/{}.git", repo.slug()))
}

/// Creates the bare directory if a crash right after the row's creation left it out.
async fn ensure_directory(forge: &Forge, repo: &Repo) -> Result<(), Fault> {
    let path = forge.layout().repo(repo.id);
    if repo.refs_generation == 0 && !tokio::fs::try_exists(&path).await.unwrap_or(false) {
        bare::init_bare(forge.layout(), repo.id, &repo.default_branch).await?;
    }
    Ok(())
}

/// Points HEAD at the default branch of the row. HEAD follows the database, and readers of refs take the default branch from
/// there, so a failure only leaves it to the next reader to correct HEAD.
pub(crate) async fn follow_head(forge: &Forge, id: RepoId, default_branch: &RefName) {
    if let Err(error) = bare::set_head(forge.layout(), id, default_branch).await {
        tracing::warn!(%error, repo = id.get(), "HEAD could not be written; the next reader of the refs corrects it");
    }
}
