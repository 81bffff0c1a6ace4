//! A forge without a server around it, on a database and a clock of the test's.

use abide_core::RepoId;
use abide_forge::accounts::password::Cost;
use abide_forge::accounts::{self, add_user};
use abide_forge::repos::{Repo, create};
use abide_forge::{Caller, Forge, Node, OsRandom, Settings};
use abide_git::{Git, GitLimits, Layout};
use abide_store::{Options, Store, migrate};
use abide_testkit::{Engine, TestClock, TestDatabase};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

pub struct Rig {
    pub forge: Forge,
    pub store: Store,
    pub clock: TestClock,
    pub database: TestDatabase,
}

pub async fn rig(engine: Engine) -> Rig {
    rig_with(engine, |_| {}).await
}

/// A forge with other settings than the usual ones.
pub async fn rig_with(engine: Engine, change: impl FnOnce(&mut Settings)) -> Rig {
    // As the binary does at its start: the doctor reports files that others can read.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let database = migrated(engine).await;
    let clock = TestClock::new();
    let (forge, store) = node_with(&database, &clock, "first", change).await;
    Rig { forge, store, clock, database }
}

/// A database with the schema of today and nothing in it.
async fn migrated(engine: Engine) -> TestDatabase {
    let stamp = migrate::fingerprint();
    if let Some(copy) = TestDatabase::copied(engine, &stamp) {
        return copy;
    }
    let database = TestDatabase::new(engine);
    let store = Store::open(&options(&database), Arc::new(TestClock::new())).await;
    store.expect("the database opens").close().await;
    database.keep(&stamp);
    TestDatabase::copied(engine, &stamp).expect("it was just kept")
}

fn options(database: &TestDatabase) -> Options {
    match database.url() {
        Some(url) => Options::postgres(url),
        None => Options::sqlite(database.data_dir().join("abide.db")),
    }
}

/// Another process on the same database and directories.
pub async fn node(database: &TestDatabase, clock: &TestClock, name: &str) -> (Forge, Store) {
    node_with(database, clock, name, |_| {}).await
}

pub async fn node_with(
    database: &TestDatabase,
    clock: &TestClock,
    name: &str,
    change: impl FnOnce(&mut Settings),
) -> (Forge, Store) {
    node_within(database, clock, name, GitLimits::default(), change).await
}

/// Another process whose git has other limits than the usual ones.
pub async fn node_within(
    database: &TestDatabase,
    clock: &TestClock,
    name: &str,
    limits: GitLimits,
    change: impl FnOnce(&mut Settings),
) -> (Forge, Store) {
    let data = database.data_dir();
    let store = Store::open(&options(database), Arc::new(clock.clone())).await.expect("the database opens");
    let layout = Layout::new(data);
    std::fs::create_dir_all(layout.incoming_root()).expect("writable");
    let git = Git::detect(Path::new("git"), &layout, limits).await.expect("git is installed");
    let mut settings = Settings::default();
    settings.jobs.poll = Duration::from_millis(20);
    settings.login.password_cost = Cost::Least;
    change(&mut settings);
    let node = Node::server(data, name, "test").expect("the name is free");
    (Forge::new(store.clone(), git, layout, Arc::new(OsRandom), settings, node, [7; 32].into()), store)
}

impl Rig {
    /// alice, and a repository of hers with one commit on `main`.
    pub async fn repo_with_commit(&self) -> (Repo, String) {
        let caller = self.user("alice").await;
        let request = create::Request {
            name: "project".into(),
            description: String::new(),
            visibility: abide_core::repo::Visibility::Public,
            default_branch: None,
            init: None,
        };
        let repo = create::create(&self.forge, &caller, request).await.expect("the repository is created").repo;
        let tree = self.git(repo.id, &["hash-object", "-w", "-t", "tree", "/dev/null"]);
        let commit = self.git(repo.id, &["commit-tree", &tree, "-m", "one"]);
        self.git(repo.id, &["update-ref", "refs/heads/main", &commit]);
        (repo, commit)
    }

    /// Adds an account.
    pub async fn user(&self, name: &str) -> Caller {
        let request = add_user::Request {
            name: name.into(),
            email: format!("{name}@example.org"),
            password: "correct horse battery".into(),
            site_admin: false,
            verified: false,
        };
        add_user::add_user(&self.forge, request).await.expect("the account is added");
        self.caller(name).await
    }

    /// An account that was added, as someone who asks for things.
    pub async fn caller(&self, name: &str) -> Caller {
        let name = name.parse().expect("a name");
        let user = accounts::find(&self.forge, &name).await.expect("readable").expect("the account exists");
        Caller::of(user.actor(), None)
    }

    pub fn dir(&self, id: RepoId) -> PathBuf {
        Layout::new(self.database.data_dir()).repo(id)
    }

    /// Runs git in a repository, behind the forge's back.
    pub fn git(&self, id: RepoId, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.dir(id))
            .env("GIT_DIR", self.dir(id))
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
            .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
