//! Admits the events that move repositories one by one, in the order in which a connection sent them. A state that
//! directly follows its announcement must find it.

use super::{Verified, failed};
use crate::{Fault, Forge, grasp};
use abide_nostr::EventId;
use abide_nostr::grasp::Answer;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Events that may wait in one lane before the batches wait too.
const WAITING: usize = 64;

pub(super) struct Lanes {
    senders: Vec<mpsc::Sender<Verified>>,
    tasks: JoinSet<()>,
}

impl Lanes {
    pub(super) fn start(forge: &Forge, count: usize) -> Self {
        let mut tasks = JoinSet::new();
        let mut lane = || {
            let (sender, receiver) = mpsc::channel(WAITING);
            tasks.spawn(walk(forge.clone(), receiver));
            sender
        };
        Self { senders: (0..count.max(1)).map(|_| lane()).collect(), tasks }
    }

    pub(super) async fn take(&self, events: Vec<Verified>) {
        for event in events {
            let lane = event.pending.submission.lane % self.senders.len() as u64;
            // The receiver ends only after this sender.
            let _ = self.senders[usize::try_from(lane).unwrap_or(0)].send(event).await;
        }
    }

    pub(super) async fn finish(self) {
        let Self { senders, mut tasks } = self;
        drop(senders);
        while tasks.join_next().await.is_some() {}
    }
}

async fn walk(forge: Forge, mut events: mpsc::Receiver<Verified>) {
    while let Some(Verified { pending, parsed }) = events.recv().await {
        let event = Arc::clone(pending.event());
        let (id, from) = (event.id, pending.submission.from);
        // A separate task: a panic loses one event, not the lane.
        let admitting = {
            let forge = forge.clone();
            tokio::spawn(async move { grasp::admit(&forge, &event, parsed, from).await })
        };
        let answer = match admitting.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(fault)) => after_failure(&forge, &id, &fault).await,
            Err(error) => after_failure(&forge, &id, &Fault::Internal(error.to_string())).await,
        };
        pending.answer(answer);
    }
}

/// An event with a committed row is never reported as refused: the server must repair a failure after the commit.
async fn after_failure(forge: &Forge, id: &EventId, fault: &Fault) -> Answer {
    match grasp::kept(forge, id).await {
        Ok(Some(answer)) => {
            tracing::warn!(error = %fault, event = %id, "an event was taken, and what follows from it is left to a job");
            answer
        }
        Ok(None) | Err(_) => failed(fault),
    }
}
