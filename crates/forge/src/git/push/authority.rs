//! Who decides about a push. [`Authority`] does so for one push: [`ByRole`], or signed events. [`SignedPushes`] is what
//! git has to know about pushes that signed events authorise, also after a crash; GRASP implements both.

use super::Verdicts;
use super::conversation::{Client as GitClient, Rest, Stopped};
use crate::git::Transport;
use crate::git::snapshots::Refs;
use crate::open::{RepoCoordinate, open_locked};
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::{RefUpdate, RepoId, UserId};
use abide_git::pace::Paced;
use abide_git::report::RefResult;
use abide_git::{Client, Connected, PacketReader, PushRequest, ReceiveLimits};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::AsyncRead;

/// Bytes of a client.
pub type Input<'a> = Box<dyn AsyncRead + Send + Unpin + 'a>;

/// Packets of a client.
pub(crate) type Reader<'a> = PacketReader<Paced<Input<'a>>>;

/// Decides about one push, under the repository's lease.
pub(crate) trait Authority: Send + Sync {
    /// Client whose slots git uses for the push.
    fn client(&self, caller: &Caller) -> Client;

    /// Judges the push against the current refs; refusals go into its verdicts. `None`: nothing is left to do, or nothing
    /// changes.
    fn judge<'a>(&'a self, forge: &'a Forge, push: Judging<'a>) -> BoxFuture<'a, Result<Option<Plan>, Fault>>;

    /// Checks in the transaction of the intent that the plan is still allowed. Returns the locked repository.
    fn still_holds<'a>(
        &'a self,
        tx: &'a mut Tx,
        caller: &'a Caller,
        repo: RepoId,
        plan: &'a Plan,
    ) -> BoxFuture<'a, Result<Repo, NotBegun>>;

    /// The intent is written; so many bytes are reserved for its git data.
    fn begun(&self, _forge: &Forge, _reserved: u64) {}

    /// Releases the reservation under the push's key, for git data that is not stored.
    fn give_back<'a>(&'a self, _forge: &'a Forge, _key: &'a str) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }
}

/// A push that is judged.
pub(crate) struct Judging<'a> {
    pub repo: &'a Repo,
    pub caller: &'a Caller,
    pub refs: &'a Refs,
    pub verdicts: &'a mut Verdicts,
    pub objects: Option<&'a Connected>,
    pub key: &'a str,
    /// Bytes reserved under the push's key.
    pub reserved: &'a mut Option<u64>,
}

/// Resulting ref updates.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub updates: Vec<RefUpdate>,
    pub actor: Option<UserId>,
    /// The signed events that authorise the push, as the push's row keeps them.
    pub signed: Option<String>,
    /// Id of the state that the refs follow, if it waits in purgatory: it must still be there when the intent is written.
    pub waits: Option<[u8; 32]>,
}

/// Reason why an attempt did not begin. Rolls the attempt back, including the lease.
pub(crate) enum NotBegun {
    /// Another holder has the lease.
    Busy,
    /// The refs, or the events that authorise the push, changed since they were judged.
    Moved,
    Access(Access),
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// The caller's role decides.
pub(crate) struct ByRole;

impl Authority for ByRole {
    fn client(&self, caller: &Caller) -> Client {
        caller.client()
    }

    fn judge<'a>(&'a self, _: &'a Forge, push: Judging<'a>) -> BoxFuture<'a, Result<Option<Plan>, Fault>> {
        push.verdicts.refuse_by_rule(&push.repo.default_branch, push.refs);
        let plan = (!push.verdicts.none_left()).then(|| Plan {
            updates: push.verdicts.accepted(),
            actor: push.caller.user_id(),
            signed: None,
            waits: None,
        });
        std::future::ready(Ok(plan)).boxed()
    }

    fn still_holds<'a>(
        &'a self,
        tx: &'a mut Tx,
        caller: &'a Caller,
        repo: RepoId,
        _: &'a Plan,
    ) -> BoxFuture<'a, Result<Repo, NotBegun>> {
        async move { open_locked(tx, caller, repo, Action::GitPush).await.map_err(NotBegun::Access) }.boxed()
    }
}

/// A push to a repository that signed events govern.
pub(crate) struct SignedPush<'a> {
    pub coordinate: &'a RepoCoordinate,
    /// Id of the repository, or the id reserved for it.
    pub id: RepoId,
    /// `None` until it leaves purgatory.
    pub repo: Option<&'a Repo>,
    pub caller: &'a Caller,
    pub transport: Transport,
    pub request: &'a PushRequest,
    pub limits: &'a ReceiveLimits,
    pub client: &'a GitClient,
}

/// Pushes that signed events authorise. `compose.rs` gives every forge an `Arc<dyn SignedPushes>`.
pub(crate) trait SignedPushes: Send + Sync {
    /// Receives a push whose commands were read, and returns the result for each ref.
    fn receive<'a, 'i: 'a>(
        &'a self,
        forge: &'a Forge,
        push: SignedPush<'a>,
        reader: &'a mut Reader<'i>,
    ) -> BoxFuture<'a, Result<(Vec<RefResult>, Rest), Stopped>>;

    /// Writes the effects of the events of a push whose refs moved, in the transaction that ends the push.
    fn finish<'a>(&'a self, tx: &'a mut Tx, repo: &'a Repo, signed: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Passes the events of a finished push on to subscribers.
    fn publish(&self, forge: &Forge, signed: &str);
}
