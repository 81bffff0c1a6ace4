//! Signed events as the authority of pushes.

use super::align::Bringer;
use super::push::{Decision, Order, RepoCoordinate, View, decide};
use super::quota::{self, Strangers, Weighing, weigh};
use super::receive;
use super::signed::{self, Signed};
use crate::git::push::authority::{Authority, Judging, NotBegun, Plan, Reader, SignedPush, SignedPushes};
use crate::git::push::conversation::{Rest, Stopped};
use crate::open::judge_decision;
use crate::relay::Relay;
use crate::{Access, Caller, Fault, Forge, GraspSettings};
use abide_core::RepoId;
use abide_core::policy::can_push_by_events;
use abide_git::report::RefResult;
use abide_git::{Client, Connected};
use abide_store::nostr::purgatory;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Signed events decide about one change.
pub(super) struct BySignature {
    pub coordinate: RepoCoordinate,
    pub order: Order,
    pub bringer: Bringer,
    /// Minimum lifetime left to a waiting state that authorises the change.
    pub after_push: Duration,
}

impl Authority for BySignature {
    fn client(&self, _: &Caller) -> Client {
        self.bringer.client
    }

    fn judge<'a>(&'a self, forge: &'a Forge, push: Judging<'a>) -> BoxFuture<'a, Result<Option<Plan>, Fault>> {
        self.ask(forge, push).boxed()
    }

    fn still_holds<'a>(
        &'a self,
        tx: &'a mut Tx,
        _: &'a Caller,
        repo: RepoId,
        plan: &'a Plan,
    ) -> BoxFuture<'a, Result<Repo, NotBegun>> {
        self.still_allowed(tx, repo, plan).boxed()
    }

    fn begun(&self, forge: &Forge, reserved: u64) {
        // Counted before it is charged: briefly twice, but never not at all.
        Strangers::of(forge).add(reserved);
    }

    fn give_back<'a>(&'a self, forge: &'a Forge, key: &'a str) -> BoxFuture<'a, ()> {
        quota::give_back(forge, key).boxed()
    }
}

impl BySignature {
    async fn ask(&self, forge: &Forge, push: Judging<'_>) -> Result<Option<Plan>, Fault> {
        let mut object_dirs = vec![forge.layout().repo(push.repo.id)];
        let area = push.objects.and_then(Connected::area).map(Path::to_owned);
        object_dirs.extend(area.clone());
        let mut plan = match decide(forge, &self.coordinate, &self.order, &View::of(push.refs, object_dirs)).await? {
            Decision::Go(plan) => plan,
            Decision::Nothing => return Ok(None),
            Decision::Refuse(reason) => {
                push.verdicts.refuse_all(&reason);
                return Ok(None);
            }
        };
        if let Some(area) = area {
            let (objects, owner, from) = (area.join("objects"), self.coordinate.owner, push.caller.ip);
            let weighing = Weighing { objects, owner, from, paying: &self.bringer.paying, key: push.key, more: 0 };
            match weigh(forge, &mut plan.signed, weighing).await? {
                Ok(bytes) => *push.reserved = bytes,
                Err(refusal) => {
                    push.verdicts.refuse_all(&refusal.reason);
                    return Ok(None);
                }
            }
        }
        Ok(Some(Plan {
            signed: Some(plan.signed.encode()),
            waits: plan.waits.map(|state| state.to_bytes()),
            updates: plan.updates,
            actor: plan.actor,
        }))
    }

    /// The repository accepts changes, and the authorising state still waits and will not expire during the push.
    async fn still_allowed(&self, tx: &mut Tx, repo: RepoId, plan: &Plan) -> Result<Repo, NotBegun> {
        let repo = repos::lock(tx, repo, None).await?.ok_or(NotBegun::Access(Access::NotFound))?;
        judge_decision(can_push_by_events(&repo.facts())).map_err(NotBegun::Access)?;
        if let Some(state) = &plan.waits {
            let until = tx.now().plus(self.after_push);
            if !purgatory::raise_state(tx, state, until).await? {
                return Err(NotBegun::Moved);
            }
        }
        Ok(repo)
    }
}

/// Pushes that signed events authorise, for git.
pub(crate) struct GraspPushes(pub GraspSettings);

impl SignedPushes for GraspPushes {
    fn receive<'a, 'i: 'a>(
        &'a self,
        forge: &'a Forge,
        push: SignedPush<'a>,
        reader: &'a mut Reader<'i>,
    ) -> BoxFuture<'a, Result<(Vec<RefResult>, Rest), Stopped>> {
        receive::run(forge, push, reader).boxed()
    }

    fn finish<'a>(&'a self, tx: &'a mut Tx, repo: &'a Repo, signed: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        signed::finish(tx, &self.0, repo, signed).boxed()
    }

    fn publish(&self, forge: &Forge, signed: &str) {
        // It was decoded before, in the transaction that ended the push.
        let events = Signed::decode(signed).map(|signed| signed.events()).unwrap_or_default();
        Relay::of(forge).publish(&events.into_iter().map(Arc::new).collect::<Vec<_>>());
    }
}
