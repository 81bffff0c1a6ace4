//! Use cases on a server's data in the test's own process, as a command beside the server would have them. A command is a
//! process, and most tests need several accounts; that the commands do the same is shown where they are tested.
//!
//! A binary that `ABIDE_TEST_BINARY` names may have another schema than these tests, so its own commands are used there.

use abide_core::UserId;
use abide_core::scope::Scopes;
use abide_core::time::SystemClock;
use abide_forge::accounts::add_token::add_token;
use abide_forge::accounts::add_user::{Request, add_user};
use abide_forge::accounts::password::Cost;
use abide_forge::accounts::{self, ssh_keys};
use abide_forge::doctor::{self, Finding};
use abide_forge::{Caller, Forge, Node, OsRandom, Settings, secret, sequencer};
use abide_git::{Git, GitLimits, Layout};
use abide_store::{Options, Store};
use abide_testkit::postgres::in_runtime;
use abide_testkit::{Idle, PASSWORD, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Commands of an operator beside a running server.
pub trait Beside {
    /// Adds an account with the password [`PASSWORD`].
    fn add_user(&self, name: &str);
    /// Adds an account that administers the site, with the password [`PASSWORD`].
    fn add_admin(&self, name: &str);
    /// Adds an account and returns a token with these scopes, comma-separated.
    fn add_person(&self, name: &str, site_admin: bool, scopes: &str) -> String;
    /// Makes a token with these scopes, comma-separated, for an account.
    fn add_token(&self, name: &str, scopes: &str) -> String;
    /// Registers an SSH public key for an account.
    fn add_ssh_key(&self, name: &str, public_key: &Path);
    /// Findings of the doctor.
    fn examine(&self) -> Vec<Finding>;
}

impl Beside for Server {
    #[track_caller]
    fn add_user(&self, name: &str) {
        if is_other_binary() {
            return user_by_command(self, name, false);
        }
        with_forge(self, async |forge| user(forge, name, false).await);
    }

    #[track_caller]
    fn add_admin(&self, name: &str) {
        if is_other_binary() {
            return user_by_command(self, name, true);
        }
        with_forge(self, async |forge| user(forge, name, true).await);
    }

    #[track_caller]
    fn add_person(&self, name: &str, site_admin: bool, scopes: &str) -> String {
        if is_other_binary() {
            user_by_command(self, name, site_admin);
            return self.add_token(name, scopes);
        }
        with_forge(self, async |forge| {
            let user = user(forge, name, site_admin).await;
            token(forge, user, scopes).await
        })
    }

    #[track_caller]
    fn add_token(&self, name: &str, scopes: &str) -> String {
        if is_other_binary() {
            let said = self.cli_ok(&["token", "add", name, "--scopes", scopes]);
            return said.split_whitespace().find(|word| word.starts_with("abide_pat_")).expect("a token").to_owned();
        }
        with_forge(self, async |forge| token(forge, named(forge, name).await, scopes).await)
    }

    #[track_caller]
    fn add_ssh_key(&self, name: &str, public_key: &Path) {
        if is_other_binary() {
            self.cli_ok(&["ssh-key", "add", name, public_key.to_str().expect("temporary paths are UTF-8")]);
            return;
        }
        let key = fs::read_to_string(public_key).expect("a public key is a text");
        with_forge(self, async |forge| {
            let user = named(forge, name).await;
            ssh_keys::add(forge, &Caller::anonymous(None), user, "", &key).await.expect("the key can be added")
        });
    }

    #[track_caller]
    fn examine(&self) -> Vec<Finding> {
        with_forge(self, async |forge| doctor::examine(forge).await.expect("everything can be looked at").findings)
    }
}

fn is_other_binary() -> bool {
    std::env::var_os("ABIDE_TEST_BINARY").is_some()
}

#[track_caller]
fn user_by_command(server: &Server, name: &str, site_admin: bool) {
    let email = format!("{name}@example.org");
    let mut args = vec!["user", "add", name, "--email", &email, "--password-stdin"];
    args.extend(site_admin.then_some("--admin"));
    let output = server.cli_stdin(&args, format!("{PASSWORD}\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn user(forge: &Forge, name: &str, site_admin: bool) -> UserId {
    let (email, password) = (format!("{name}@example.org"), PASSWORD.to_owned());
    let request = Request { name: name.to_owned(), email, password: password.into(), site_admin, verified: false };
    add_user(forge, request).await.expect("the account can be added")
}

async fn named(forge: &Forge, name: &str) -> UserId {
    let found = accounts::find(forge, &name.parse().expect("this is a name")).await.expect("readable");
    found.expect("there is such an account").id
}

async fn token(forge: &Forge, user: UserId, scopes: &str) -> String {
    let scopes = Scopes::parse(scopes).expect("these are scopes");
    add_token(forge, &Caller::anonymous(None), user, "test", scopes, None).await.expect("the token can be made")
}

/// Does something as a command does it.
#[track_caller]
fn with_forge<T: Send>(server: &Server, run: impl AsyncFnOnce(&Forge) -> T + Send) -> T {
    with_store(server, async |store| {
        let forge = forge(server, store.clone());
        let done = run(&forge).await;
        sequencer::catch_up(&forge).await.expect("the logs can be numbered");
        done
    })
}

/// Stores that this process has opened, by the directory of their server: a connection costs PostgreSQL a process, and one
/// to SQLite reads the whole schema.
static STORES: Idle<PathBuf, Store> = Idle::new();

/// Does something to the server's database by its own store.
#[track_caller]
pub fn with_store<T: Send>(server: &Server, work: impl AsyncFnOnce(&Store) -> T + Send) -> T {
    in_runtime(async || {
        let data = server.data_dir();
        let store = match STORES.take(data) {
            Some(store) => store,
            None => {
                server.close_before_it_ends(close);
                let url = server.database().url();
                open(url.map_or_else(|| Options::sqlite(data.join("abide.db")), Options::postgres)).await
            }
        };
        let done = work(&store).await;
        STORES.put(data, store);
        done
    })
}

fn close(data: &Path) {
    if let Some(store) = STORES.take(data) {
        in_runtime(async || store.close().await);
    }
}

async fn open(options: Options) -> Store {
    let options = Options { connections: 1, ..options };
    Store::open(&options, Arc::new(SystemClock)).await.expect("the server's database can be opened")
}

fn forge(server: &Server, store: Store) -> Forge {
    let data = server.data_dir();
    let layout = Layout::new(data);
    let git = Git::new(Path::new("git"), &layout, GitLimits::default()).expect("it can have a home");
    let key = secret::load_or_create(data, &OsRandom).expect("the server has a key");
    let mut settings = Settings::default();
    settings.login.password_cost = Cost::Least;
    Forge::new(store, git, layout, Arc::new(OsRandom), settings, Node::command("beside"), key)
}
