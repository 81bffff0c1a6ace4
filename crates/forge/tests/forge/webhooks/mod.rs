//! Webhooks, with a real receiver at the other end.

mod golden;
mod managing;
mod payloads;
mod receiver;
mod same_bytes;
mod sending;
mod suspension;

use crate::rig::{Rig, rig_with};
use abide_core::HookId;
use abide_core::event::{Body, Payload, Publicity, Push, PushedRef, RepoThen, SubjectKind};
use abide_forge::repos::{Repo, open};
use abide_forge::webhooks::{Change, Delivery, Hook, Secret, create, send, show};
use abide_forge::{AllowList, Caller, Settings, consumers};
use abide_store::StoreError;
use abide_store::events::{self, NewEvent};
use abide_testkit::Engine;
use receiver::Receiver;
use std::time::Duration;

/// alice's public repository, and a receiver of its deliveries.
pub struct Setup {
    pub rig: Rig,
    pub alice: Caller,
    pub repo: Repo,
    pub receiver: Receiver,
}

pub fn settings(settings: &mut Settings) {
    settings.outbound.allow = AllowList::parse(["127.0.0.1"]).expect("a net");
    settings.outbound.limits.total = Duration::from_secs(2);
    settings.attention.stars.times = 10_000;
}

pub async fn setup(engine: Engine) -> Setup {
    setup_with(engine, |_| {}).await
}

pub async fn setup_with(engine: Engine, change: impl FnOnce(&mut Settings)) -> Setup {
    let rig = rig_with(engine, |it| {
        settings(it);
        change(it);
    })
    .await;
    consumers::register(&rig.forge, &consumers::all()).await.expect("they are made known");
    let (repo, _) = rig.repo_with_commit().await;
    let alice = rig.caller("alice").await;
    Setup { rig, alice, repo, receiver: Receiver::start().await }
}

pub fn change(url: &str, events: &[&str]) -> Change {
    Change {
        url: Some(url.to_owned()),
        secret: Secret::Set("It's a Secret to Everybody".into()),
        events: Some(events.iter().map(ToString::to_string).collect()),
        ..Change::default()
    }
}

impl Setup {
    /// A hook that was pinged already.
    pub async fn hook(&self, events: &[&str]) -> Hook {
        let hook =
            create::create(&self.rig.forge, &self.alice, &self.repo, &change(&self.receiver.url(), events)).await;
        let hook = hook.expect("the hook is added");
        self.deliver().await;
        self.receiver.clear();
        hook
    }

    /// A push as its end emits it, without the road that it came by.
    pub async fn pushed(&self, refs: Vec<PushedRef>) {
        let event = NewEvent {
            actor: self.alice.user_id(),
            repo: Some(self.repo.id),
            subject_kind: SubjectKind::Repo,
            subject_id: self.repo.id.get(),
            publicity: Publicity::Public,
            body: Body {
                repo: RepoThen { repo_id: Some(self.repo.id), ..RepoThen::default() },
                payload: Payload::Push(Push { refs: Some(refs), ..Push::default() }),
            },
        };
        let written: Result<(), StoreError> =
            self.rig.store.write(event, |tx, event| Box::pin(async move { events::append(tx, event).await })).await;
        written.expect("written");
    }

    /// Takes events in and sends what is due.
    pub async fn deliver(&self) {
        self.take_in().await;
        send::catch_up(&self.rig.forge).await.expect("it sends");
    }

    pub async fn take_in(&self) {
        consumers::catch_up(&self.rig.forge).await.expect("it reads");
    }

    pub fn pass(&self, seconds: u64) {
        self.rig.clock.advance(Duration::from_secs(seconds));
    }

    /// Every delivery of a hook, the oldest first.
    pub async fn deliveries(&self, hook: &Hook) -> Vec<Delivery> {
        let mut found = show::deliveries(&self.rig.forge, hook, None, 1000).await.expect("readable");
        found.reverse();
        found
    }

    /// The hook as it is now.
    pub async fn seen(&self, id: HookId) -> Hook {
        show::hook(&self.rig.forge, &self.alice, &self.repo, &id.to_string()).await.expect("it is there").hook
    }

    /// The repository as it is now.
    pub async fn again(&self) -> Repo {
        let locator = open::RepoLocator::Id(self.repo.id.to_string());
        open::open(&self.rig.forge, &self.alice, &locator, abide_core::policy::Action::RepoRead)
            .await
            .expect("it is there")
    }
}
