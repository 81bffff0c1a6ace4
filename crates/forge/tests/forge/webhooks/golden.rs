//! Bytes of every kind of payload, as stored before the first attempt and as sent, against the files in
//! `tests/golden/webhooks`: the draft in the first line, the body in the second.
//!
//! `ABIDE_WRITE_SNAPSHOTS=1 ./test golden_payloads` rewrites the files. Receivers may compare bytes, and drafts outlive an
//! upgrade, so a difference is a breaking change.

use super::{Setup, change, setup, setup_with};
use abide_core::event::{
    Body, NostrAddition, Origin, Payload, Person, Publicity, PushedCommit, PushedRef, RepoThen, SubjectKind,
};
use abide_core::issues::{Reason, State};
use abide_core::repo::{Role, Visibility};
use abide_core::transfer::Answer;
use abide_forge::attention::star;
use abide_forge::issues::change::Names;
use abide_forge::issues::{self, comment, labels, milestones};
use abide_forge::relay::to_record;
use abide_forge::repos::{collaborators, delete, edit, marks, purge, rename, topics, transfer};
use abide_forge::webhooks::{self, Change, Hook, Secret, ask, create, send, show};
use abide_forge::{Caller, accounts};
use abide_nostr::{Event, nip19};
use abide_store::StoreError;
use abide_store::events::{self, NewEvent};
use abide_store::nostr;
use abide_testkit::{Engine, Key, TestClock};
use rstest::rstest;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

const ZERO: &str = "0000000000000000000000000000000000000000";

/// A setup with a webhook for every event, and the deliveries that were compared.
struct Golden {
    setup: Setup,
    hook: Hook,
    sent: usize,
}

impl Golden {
    /// Adds the webhook and compares its ping.
    async fn new(setup: Setup, name: &str) -> Self {
        let wanted = change(&setup.receiver.url(), &["*"]);
        let hook = create::create(&setup.rig.forge, &setup.alice, &setup.repo, &wanted).await.expect("allowed");
        let mut golden = Self { setup, hook, sent: 0 };
        golden.compare(name).await;
        golden
    }

    /// Compares the drafts and the bodies of all new deliveries.
    async fn compare(&mut self, name: &str) {
        let drafts = self.drafts().await;
        assert!(!drafts.is_empty(), "{name} has no delivery");
        self.send_drafts(name, drafts).await;
    }

    /// Stored payloads that were not sent yet, the oldest first.
    async fn drafts(&self) -> Vec<String> {
        self.setup.take_in().await;
        let mut drafts = Vec::new();
        for waiting in self.setup.deliveries(&self.hook).await.iter().filter(|waiting| waiting.attempts == 0) {
            let id = waiting.id.to_string();
            drafts.push(show::delivery(&self.setup.rig.forge, &self.hook, &id).await.expect("readable").payload);
        }
        drafts
    }

    async fn send_drafts(&mut self, name: &str, drafts: Vec<String>) {
        send::catch_up(&self.setup.rig.forge).await.expect("it sends");
        let got = self.setup.receiver.got().split_off(self.sent);
        assert_eq!(got.len(), drafts.len(), "{name}: one body for each draft");
        self.sent += got.len();
        for (index, (draft, got)) in drafts.iter().zip(&got).enumerate() {
            let body = std::str::from_utf8(&got.body).expect("text");
            let action = got.json()["action"].as_str().map(|action| format!(".{action}")).unwrap_or_default();
            let both = format!("{draft}\n{body}\n");
            let both = both.replace(&self.setup.receiver.url(), "http://receiver/hook");
            assert_golden(&format!("{name}.{index}.{}{action}.json", got.event()), &both);
        }
    }

    /// An event of the repository as its use case emits it.
    async fn emit(&self, actor: Option<&Caller>, subject_kind: SubjectKind, payload: Payload) {
        let event = NewEvent {
            actor: actor.and_then(Caller::user_id),
            repo: Some(self.setup.repo.id),
            subject_kind,
            subject_id: self.setup.repo.id.get(),
            publicity: Publicity::Public,
            body: Body { repo: RepoThen { repo_id: Some(self.setup.repo.id), ..RepoThen::default() }, payload },
        };
        let written: Result<(), StoreError> = self
            .setup
            .rig
            .store
            .write(event, |tx, event| Box::pin(async move { events::append(tx, event).await }))
            .await;
        written.expect("written");
    }

    /// Runs git with a fixed time, so that commits have the same id in every run.
    fn git(&self, args: &[&str]) -> String {
        let dir = self.setup.rig.dir(self.setup.repo.id);
        let output = Command::new("git")
            .args(args)
            .current_dir(&dir)
            .env("GIT_DIR", &dir)
            .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Carl"), ("GIT_COMMITTER_EMAIL", "carl@example.org")])
            .envs([("GIT_AUTHOR_DATE", "1767225600 +0000"), ("GIT_COMMITTER_DATE", "1767225700 +0000")])
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

#[track_caller]
fn assert_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/webhooks").join(name);
    if env::var_os("ABIDE_WRITE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(&path, found).expect("writable");
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, wanted, "{name} differs; ABIDE_WRITE_SNAPSHOTS=1 rewrites it");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn golden_payloads_of_repositories_and_people(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut golden = Golden::new(setup(engine).await, "repo-ping").await;
    let unsigned = Change { secret: Secret::Remove, ..change(&golden.setup.receiver.url(), &["*"]) };
    let edited = webhooks::edit::edit(
        &golden.setup.rig.forge,
        &golden.setup.alice,
        &golden.setup.repo,
        golden.hook.id,
        &unsigned,
    );
    golden.hook = edited.await.expect("allowed");
    ask::ping(&golden.setup.rig.forge, &golden.setup.alice, &golden.setup.repo, &golden.hook).await.expect("allowed");
    golden.compare("repo-ping-without-secret").await;
    let (forge, alice) = (golden.setup.rig.forge.clone(), golden.setup.alice.clone());
    let repo = golden.setup.repo.clone();
    let about = edit::Request { description: Some("A \"project\"".into()), ..Default::default() };
    edit::edit(&forge, &alice, &repo, about).await.expect("allowed");
    topics::replace(&forge, &alice, &repo, &["rust".into(), "forge".into()]).await.expect("allowed");
    golden.compare("repo-edited").await;

    golden.setup.pass(1);
    star::star(&forge, &alice, &repo).await.expect("allowed");
    star::unstar(&forge, &alice, &repo).await.expect("allowed");
    golden.compare("repo-star").await;

    golden.setup.rig.user("bob").await;
    let bob = accounts::find(&forge, &"bob".parse().expect("a name")).await.expect("readable").expect("he exists");
    collaborators::set(&forge, &alice, &repo, &bob, Role::Write).await.expect("allowed");
    collaborators::set(&forge, &alice, &repo, &bob, Role::Admin).await.expect("allowed");
    collaborators::remove(&forge, &alice, &repo, &bob).await.expect("allowed");
    golden.compare("repo-member").await;

    rename::rename(&forge, &alice, &golden.setup.again().await, "renamed").await.expect("allowed");
    marks::archive(&forge, &alice, &golden.setup.again().await).await.expect("allowed");
    marks::unarchive(&forge, &alice, &golden.setup.again().await).await.expect("allowed");
    marks::set_visibility(&forge, &alice, &golden.setup.again().await, Visibility::Private).await.expect("allowed");
    golden.compare("repo-life").await;
    marks::set_visibility(&forge, &alice, &golden.setup.again().await, Visibility::Public).await.expect("allowed");
    golden.compare("repo-public").await;

    let offer = transfer::offer(&forge, &alice, &golden.setup.again().await, "bob").await.expect("allowed");
    let bob = golden.setup.rig.caller("bob").await;
    transfer::answer(&forge, &bob, &offer.transfer.id.to_string(), Answer::Accept).await.expect("allowed");
    golden.compare("repo-transferred").await;

    delete::delete(&forge, &bob, &golden.setup.again().await).await.expect("allowed");
    golden.compare("repo-deleted").await;
    golden.setup.pass(8 * 86_400);
    purge::sweep(&forge).await.expect("it sweeps");
    // The rows of a webhook go with its repository, so its draft cannot be read by id.
    golden.setup.deliver().await;
    let purged = golden.setup.receiver.got().pop().expect("the end is sent");
    let body = std::str::from_utf8(&purged.body).expect("text");
    assert_golden("repo-purged.0.repository.purged.json", &format!("{body}\n"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn golden_payloads_of_issues(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut golden = Golden::new(setup(engine).await, "issue-ping").await;
    let (forge, alice) = (golden.setup.rig.forge.clone(), golden.setup.alice.clone());
    let repo = golden.setup.repo.clone();
    let label = |name: &str, description: &str| labels::Request {
        name: Some(name.into()),
        color: Some("d73a4a".into()),
        description: Some(description.into()),
    };
    labels::create(&forge, &alice, &repo, label("a bug/odd?", "Something is wrong")).await.expect("allowed");
    labels::create(&forge, &alice, &repo, label("Käse & Brot", "")).await.expect("allowed");
    let due_on = Some(Some(TestClock::START.plus(std::time::Duration::from_secs(864_000))));
    let first = milestones::Request {
        title: Some("v1".into()),
        description: Some("The first".into()),
        due_on,
        ..Default::default()
    };
    let first = milestones::create(&forge, &alice, &repo, first).await.expect("allowed");
    let second = milestones::Request { title: Some("v2".into()), ..Default::default() };
    let second = milestones::create(&forge, &alice, &repo, second).await.expect("allowed");

    let plain = issues::create::Request { title: "Plain".into(), ..Default::default() };
    issues::create::create(&forge, &alice, &repo, plain).await.expect("allowed");
    let new = issues::create::Request {
        title: "It crashes".into(),
        body: "Badly.\n\"Really\" ~ * <b>".into(),
        labels: vec!["a bug/odd?".into(), "Käse & Brot".into()],
        assignees: vec!["alice".into()],
        milestone: Some(first.number),
    };
    let issue = issues::create::create(&forge, &alice, &repo, new).await.expect("allowed");
    golden.compare("issue-opened").await;

    golden.setup.pass(60);
    let change = async |change: issues::change::Change| {
        issues::change::change(&forge, &alice, &repo, issue.number, change).await.expect("allowed");
    };
    let text = |text: &str| Some(text.to_owned());
    change(issues::change::Change { title: text("It burns"), ..Default::default() }).await;
    change(issues::change::Change { body: text("Brightly."), ..Default::default() }).await;
    change(issues::change::Change { title: text("It glows"), body: text("Dimly."), ..Default::default() }).await;
    golden.compare("issue-edited").await;

    let nobody = Some(Names::Set(Vec::new()));
    change(issues::change::Change { assignees: nobody.clone(), ..Default::default() }).await;
    let alice_again = Some(Names::Set(vec!["alice".into()]));
    change(issues::change::Change { assignees: alice_again, ..Default::default() }).await;
    let one = Some(Names::Set(vec!["a bug/odd?".into()]));
    change(issues::change::Change { labels: one, ..Default::default() }).await;
    change(issues::change::Change { labels: Some(Names::Add(vec!["Käse & Brot".into()])), ..Default::default() }).await;
    change(issues::change::Change { milestone: Some(None), ..Default::default() }).await;
    change(issues::change::Change { milestone: Some(Some(second.number)), ..Default::default() }).await;
    golden.compare("issue-changed").await;

    let state = |state, reason| issues::change::Change { state: Some((state, reason)), ..Default::default() };
    change(state(State::Closed, Some(Reason::NotPlanned))).await;
    golden.compare("issue-closed").await;
    change(state(State::Open, None)).await;
    golden.compare("issue-reopened").await;

    let said = comment::add(&forge, &alice, &repo, issue.number, "Really?").await.expect("allowed");
    golden.compare("issue-commented").await;
    comment::edit(&forge, &alice, &repo, &said.id.to_string(), "Really!").await.expect("allowed");
    golden.compare("issue-comment-edited").await;
    comment::remove(&forge, &alice, &repo, &said.id.to_string()).await.expect("allowed");
    golden.compare("issue-comment-deleted").await;

    // Rows that go between the event and the first attempt.
    comment::add(&forge, &alice, &repo, issue.number, "Gone soon").await.expect("allowed");
    change(issues::change::Change { labels: nobody.clone(), ..Default::default() }).await;
    change(issues::change::Change { milestone: Some(Some(first.number)), ..Default::default() }).await;
    let drafts = golden.drafts().await;
    let last = issues::show::comments(&forge, &issue, None, abide_forge::repos::Page { limit: 100, offset: 0 }).await;
    let last = last.expect("readable").0.pop().expect("the comment");
    comment::remove(&forge, &alice, &repo, &last.id.to_string()).await.expect("allowed");
    labels::remove(&forge, &alice, &repo, "a bug/odd?").await.expect("allowed");
    milestones::remove(&forge, &alice, &repo, first.number).await.expect("allowed");
    golden.send_drafts("issue-gone", drafts).await;
    golden.compare("issue-after").await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn golden_payloads_of_pushes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut golden = Golden::new(setup(engine).await, "push-ping").await;
    let refs = moved_refs(&golden);
    golden.setup.pushed(refs).await;
    golden.compare("push").await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn golden_payloads_of_pushes_that_are_too_large(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup_with(engine, |settings| settings.webhooks.payload_bytes = 3_900).await;
    let mut golden = Golden::new(setup, "push-large-ping").await;
    let refs = moved_refs(&golden);
    golden.setup.pushed(refs).await;
    golden.compare("push-large").await;
}

/// Moves of refs: two commits, a new branch, a tag, a deletion, a rewrite, and commits that no repository has.
fn moved_refs(golden: &Golden) -> Vec<PushedRef> {
    let git = |args: &[&str]| golden.git(args);
    let add = |path: &str, blob: &str| {
        golden.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
    };
    let (empty, head) = (git(&["hash-object", "-w", "-t", "blob", "/dev/null"]), git(&["hash-object", "-w", "HEAD"]));
    add("file.txt", &empty);
    add("dir/other.txt", &empty);
    let one = git(&["commit-tree", &git(&["write-tree"]), "-m", "one"]);
    git(&["read-tree", "--empty"]);
    add("file.txt", &head);
    add("née.txt", &empty);
    let tree = git(&["write-tree"]);
    let two = git(&["commit-tree", &tree, "-p", &one, "-m", "two"]);
    let three = git(&["commit-tree", &tree, "-p", &two, "-m", "three\n\nat length"]);
    let other = git(&["commit-tree", &tree, "-p", &one, "-m", "other"]);
    git(&["update-ref", "refs/heads/main", &three]);
    git(&["update-ref", "refs/heads/side", &other]);
    git(&["tag", "-a", "v1", "-m", "first", &two]);
    let tag = git(&["rev-parse", "refs/tags/v1"]);
    let moved = |name: &str, before: &str, after: &str| PushedRef {
        name: name.into(),
        before: before.into(),
        after: after.into(),
        commits: Vec::new(),
    };
    let person = |name: &str| Person { name: name.into(), email: format!("{name}@example.org") };
    let pushed = |id: &str, message: &str, committer: Option<Person>| PushedCommit {
        id: id.repeat(40),
        tree: "e".repeat(40),
        message: message.into(),
        time: 1_767_225_600,
        author: person("ann"),
        committer,
    };
    let commits = vec![pushed("b", "newest", None), pushed("a", "oldest", Some(person("carl")))];
    vec![
        moved("refs/heads/main", &one, &three),
        moved("refs/heads/side", ZERO, &other),
        moved("refs/tags/v1", ZERO, &tag),
        moved("refs/heads/gone", &two, ZERO),
        moved("refs/heads/rewritten", &other, &three),
        PushedRef { commits, ..moved("refs/heads/lost", &"c".repeat(40), &"b".repeat(40)) },
    ]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn golden_payloads_of_nostr_threads(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut golden = Golden::new(setup(engine).await, "nostr-ping").await;
    let at = 1_767_225_000;
    let (author, reader) = (Key::new(9), Key::new(8));
    let issue = author.event(at, 1621, &[&["subject", "The lamp is broken"], &["t", "bug"]], "It does not shine.");
    let commit = "d".repeat(40);
    let tags: &[&[&str]] = &[&["c", &commit], &["subject", "A lamp"], &["branch-name", "lamp"], &["t", "light"]];
    let pull = author.event(at, 1618, tags, "please");
    let root = issue.id.to_hex();
    let comment = reader.event(at + 1, 1111, &[&["E", &root], &["e", &root], &["K", "1621"]], "Another bulb.");
    let gone = reader.event(at + 2, 1111, &[&["E", &root], &["e", &root], &["K", "1621"]], "Removed.");
    for event in [&issue, &pull, &comment, &gone] {
        store(&golden, event).await;
    }
    let addition = |thread: &Event, event: &Event| NostrAddition {
        thread: thread.id.to_hex(),
        event: event.id.to_hex(),
        said: 1,
        author: nip19::npub(&event.pubkey),
        mentions: Vec::new(),
    };
    let alice = golden.setup.alice.clone();
    let opened = addition(&issue, &issue);
    for (actor, payload) in [
        (None, Payload::IssueCreated(Origin::Nostr(opened.clone()))),
        (None, Payload::IssueClosed(Origin::Nostr(opened.clone()))),
        (Some(&alice), Payload::IssueReopened(Origin::Nostr(opened))),
        (None, Payload::IssueCommentCreated(Origin::Nostr(addition(&issue, &comment)))),
        (None, Payload::PrOpened(addition(&pull, &pull))),
        (None, Payload::PrSynchronized(addition(&pull, &pull))),
        (None, Payload::PrClosed(addition(&pull, &pull))),
        (None, Payload::PrReopened(addition(&pull, &pull))),
        (Some(&alice), Payload::PrMerged(addition(&pull, &pull))),
        (None, Payload::PrCommentCreated(addition(&pull, &comment))),
    ] {
        golden.emit(actor, SubjectKind::NostrThread, payload).await;
    }
    golden.compare("nostr").await;

    // An event that its author deletes between the event and the first attempt.
    let payload = Payload::IssueCommentCreated(Origin::Nostr(addition(&issue, &gone)));
    golden.emit(None, SubjectKind::NostrThread, payload).await;
    let drafts = golden.drafts().await;
    let id = gone.id.to_bytes();
    let removed: Result<bool, StoreError> =
        golden.setup.rig.store.write(id, |tx, id| Box::pin(async move { nostr::events::remove(tx, id).await })).await;
    assert!(removed.expect("written"));
    golden.send_drafts("nostr-gone", drafts).await;
}

async fn store(golden: &Golden, event: &Event) {
    let record = to_record(event);
    let written: Result<(), StoreError> = golden
        .setup
        .rig
        .store
        .write(record, |tx, record| Box::pin(async move { nostr::events::insert(tx, record).await.map(drop) }))
        .await;
    written.expect("written");
}
