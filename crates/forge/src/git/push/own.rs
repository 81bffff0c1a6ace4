//! A push by the server itself, on behalf of a user. It takes the same path as every other.

use super::Transport;
use super::apply::{self, Work};
use super::authority::ByRole;
use super::verdicts::Verdicts;
use crate::{Caller, Fault, Forge};
use abide_core::RefUpdate;
use abide_git::Incoming;
use abide_store::repos::Repo;
use std::sync::Arc;

/// Moves one ref to objects in an incoming area, whose key comes from [`incoming_key`](super::incoming_key).
pub(crate) async fn own(
    forge: &Forge,
    caller: &Caller,
    repo: Repo,
    key: String,
    incoming: Incoming,
    update: RefUpdate,
) -> Result<(), Fault> {
    let (objects, refused) = incoming.connect(std::slice::from_ref(&update)).await?;
    if let Some(tip) = refused.first() {
        return Err(Fault::Internal(format!("what the server wrote itself is not whole: {}", tip.reason)));
    }
    let work = Work {
        repo,
        caller: caller.clone(),
        transport: Transport::Server.as_str(),
        key,
        objects: Some(objects),
        verdicts: Verdicts::of(vec![update], true),
        authority: Arc::new(ByRole),
        reserved: None,
    };
    let ended = forge.tasks().spawn(apply::commit(forge.clone(), work)).await;
    let committed = ended.map_err(|error| Fault::Internal(format!("the push's task ended early: {error}")))??;
    match committed.verdicts.refusal() {
        None => Ok(()),
        Some(reason) => Err(Fault::Internal(format!("a push of our own was refused: {reason}"))),
    }
}
