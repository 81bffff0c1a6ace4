//! The base of all use cases: [`Forge`] and [`Caller`]. It names no use case. State that belongs to a module is a
//! *part*: `compose.rs` makes every part together with the forge, and the module that owns it reads it with
//! [`Forge::part`].

mod by;
mod parts;
pub mod standing;

use crate::{Access, Node, Settings};
use abide_core::patience::Patience;
use abide_core::policy::{self, Actor, SiteAdmin};
use abide_core::repo::Visibility;
use abide_core::scope::{Scope, Scopes};
use abide_core::{Clock, Random, Redacted, UserId};
use abide_git::slots::Pool;
use abide_git::{Client, Git, GitError, Layout, PoolSlot};
use abide_outbound::{Gate, SystemResolver};
use abide_store::Store;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

pub use by::By;
pub(crate) use parts::Parts;
use standing::Standing;

/// Searches at once, in all and for one client: fewer than there are database connections.
const SEARCHES: (usize, usize) = (4, 2);
/// How long a search waits for its slot.
const SEARCH_QUEUE: Duration = Duration::from_secs(20);

/// Everything a use case needs, wired up once. Clones share it.
#[derive(Clone)]
pub struct Forge {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    git: Git,
    layout: Layout,
    random: Arc<dyn Random>,
    settings: Settings,
    node: Node,
    key: Redacted<[u8; 32]>,
    searches: Pool,
    tasks: TaskTracker,
    lease_freed: Notify,
    gate: Gate,
    numbered: watch::Sender<u64>,
    parts: Parts,
}

/// Base of a forge: everything but the state of modules.
pub(crate) struct Base {
    pub store: Store,
    pub git: Git,
    pub layout: Layout,
    pub random: Arc<dyn Random>,
    pub settings: Settings,
    pub node: Node,
    pub key: Redacted<[u8; 32]>,
}

impl Forge {
    /// Called by `compose.rs` alone, which makes every part.
    pub(crate) fn of_parts(base: Base, parts: Parts) -> Self {
        let Base { store, git, layout, random, settings, node, key } = base;
        let layout = layout.owned_by(&node.incoming_prefix());
        let gate = Gate::new(settings.outbound.allow.clone(), SystemResolver, settings.outbound.limits.clone());
        let inner = Inner {
            store,
            git,
            layout,
            random,
            settings,
            node,
            key,
            searches: Pool::new("searches", SEARCHES.0, SEARCHES.1),
            tasks: TaskTracker::new(),
            lease_freed: Notify::new(),
            gate,
            numbered: watch::Sender::new(0),
            parts,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The state of a module, for the module that owns it.
    pub(crate) fn part<T: Send + Sync + 'static>(&self) -> &T {
        self.inner.parts.get()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.store.clock()
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.inner.random
    }

    /// A secret of 128 random bits, as text.
    pub fn random_token(&self) -> String {
        let mut bytes = [0; 16];
        self.random().fill(&mut bytes);
        hex::encode(bytes)
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Minimum rates of git clients.
    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.inner.settings.git.idle_timeout, self.inner.settings.git.min_rate)
    }

    /// This process, one of several that may share the database.
    pub(crate) fn node(&self) -> &Node {
        &self.inner.node
    }

    /// The installation's secret.
    pub(crate) fn key(&self) -> &Redacted<[u8; 32]> {
        &self.inner.key
    }

    /// A slot for a search, so that searches leave database connections to everything else.
    pub(crate) async fn search_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.inner.searches.enter(client, SEARCH_QUEUE).await
    }

    /// Tasks that continue if their client disconnects, and that shutdown waits for.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.inner.tasks
    }

    /// Wakes waiting pushes of this process after a repository's lease was released. A hint.
    pub(crate) fn lease_freed(&self) -> &Notify {
        &self.inner.lease_freed
    }

    /// Counts the times that this process numbered events. A hint for readers of the log, because other nodes number too.
    pub(crate) fn numbered(&self) -> &watch::Sender<u64> {
        &self.inner.numbered
    }

    /// Guard of all outbound requests.
    pub(crate) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Waits for the tracked tasks, then closes the database.
    pub async fn close(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.store.close().await;
    }
}

/// The requester, with credential and address.
#[derive(Debug, Clone)]
pub struct Caller {
    pub actor: Actor,
    /// Scopes of the caller's token; `None` where no token is involved (SSH key, command line).
    pub scopes: Option<Scopes>,
    pub ip: Option<IpAddr>,
    /// The credential, for long work that checks it again.
    pub standing: Standing,
}

impl Caller {
    /// An account without a known credential, and without the limits of a token.
    pub fn of(actor: Actor, ip: Option<IpAddr>) -> Self {
        Self { standing: Standing::of(&actor), actor, scopes: None, ip }
    }

    /// A client without an account.
    pub fn anonymous(ip: Option<IpAddr>) -> Self {
        Self::of(Actor::Anonymous, ip)
    }

    /// The operator: command line and background jobs.
    pub fn operator() -> Self {
        Self::of(Actor::Operator, None)
    }

    /// The account, if there is one.
    pub fn user_id(&self) -> Option<UserId> {
        self.actor.user_id()
    }

    /// Fails if the caller's token lacks the scope. Checked before any lookup, so that the answer reveals nothing.
    pub fn ensure_scope(&self, needed: Scope) -> Result<(), Access> {
        match &self.scopes {
            Some(scopes) if !scopes.allow(needed) => Err(Access::Scope(needed)),
            _ => Ok(()),
        }
    }

    /// Fails unless the caller is an active site admin; a token must have the admin scope.
    pub(crate) fn ensure_admin(&self) -> Result<SiteAdmin, Access> {
        let admin = policy::site_admin(&self.actor).ok_or(Access::NotFound)?;
        self.ensure_scope(Scope::Admin).map(|()| admin)
    }

    /// Client whose git slots the caller takes.
    pub fn client(&self) -> Client {
        match self.actor {
            Actor::Operator => Client::SERVER,
            _ => Client::new(self.ip, self.user_id()),
        }
    }

    /// Whether the caller's token, if any, reaches repositories of this visibility.
    pub(crate) fn reaches(&self, visibility: Visibility) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.reach(visibility))
    }

    pub(crate) fn ip_text(&self) -> Option<String> {
        self.ip.map(|ip| ip.to_string())
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the operating system always has randomness once it has booted");
    }
}
