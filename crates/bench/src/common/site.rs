//! A forge without a server, with users.

use crate::Failure;
use crate::io;
use abide_core::repo::Visibility;
use abide_core::time::SystemClock;
use abide_forge::accounts::{self, add_user};
use abide_forge::repos::{Repo, create};
use abide_forge::{AllowList, Caller, Forge, Node, OsRandom, Settings};
use abide_git::{Git, GitLimits, Layout};
use abide_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;

/// Opens a forge on an empty database, with high limits.
pub(crate) async fn open(options: &Options, data: &Path) -> Result<(Forge, Layout), Failure> {
    for part in ["repos", "incoming"] {
        std::fs::create_dir_all(data.join(part)).map_err(io("make a data directory"))?;
    }
    let store = Store::open(options, Arc::new(SystemClock)).await.map_err(failed)?;
    let layout = Layout::new(data);
    let git = Git::detect(Path::new("git"), &layout, GitLimits::default()).await.map_err(failed)?;
    let mut settings = Settings::default();
    settings.lifecycle.rename_limit = usize::MAX;
    settings.disk.min_free_percent = 0;
    settings.disk.stranger_free_percent = 0;
    // The webhook receiver runs on this machine.
    settings.outbound.allow = AllowList::parse(["127.0.0.1"]).map_err(failed)?;
    settings.attention.stars.times = i64::MAX;
    settings.issues.created = i64::MAX;
    let node = Node::command("bench");
    let forge = Forge::new(store, git, layout.clone(), Arc::new(OsRandom), settings, node, [1; 32].into());
    Ok((forge, layout))
}

/// Adds a repository.
pub(crate) async fn repo(forge: &Forge, owner: &Caller, name: &str) -> Result<Repo, Failure> {
    let request = create::Request {
        name: name.to_owned(),
        description: String::new(),
        visibility: Visibility::Public,
        default_branch: None,
        init: None,
    };
    Ok(create::create(forge, owner, request).await.map_err(failed)?.repo)
}

/// Adds an account.
pub(crate) async fn person(forge: &Forge, name: &str) -> Result<Caller, Failure> {
    let request = add_user::Request {
        name: name.to_owned(),
        email: format!("{name}@example.org"),
        password: "not a secret at all".into(),
        site_admin: false,
        verified: true,
    };
    add_user::add_user(forge, request).await.map_err(failed)?;
    caller(forge, name).await
}

/// The caller of an existing account.
pub(crate) async fn caller(forge: &Forge, name: &str) -> Result<Caller, Failure> {
    let name = name.parse().map_err(failed)?;
    let user = accounts::find(forge, &name).await.map_err(failed)?;
    let user = user.ok_or_else(|| Failure::failed("the account vanished"))?;
    Ok(Caller::of(user.actor(), None))
}

/// An operation that failed measures nothing.
pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}
