//! Use cases on a server's data in the test's own process, as a command beside the server would have them. A command is a
//! process, and most tests need several accounts; that the commands do the same is shown where they are tested.

use abide_core::scope::Scopes;
use abide_core::time::SystemClock;
use abide_forge::accounts::add_token::add_token;
use abide_forge::accounts::add_user::{Request, add_user};
use abide_forge::accounts::password::Cost;
use abide_forge::{Caller, Forge, Node, OsRandom, PeopleSettings, Settings, secret, sequencer};
use abide_git::{Git, GitLimits, Layout};
use abide_store::{Options, Store};
use abide_testkit::postgres::in_runtime;
use abide_testkit::{PASSWORD, Server};
use std::path::Path;
use std::sync::Arc;

/// Adds an account and returns a token for these scopes.
#[track_caller]
pub fn add_account(server: &Server, name: &str, site_admin: bool, scopes: &str) -> String {
    let request = Request {
        name: name.to_owned(),
        email: format!("{name}@example.org"),
        password: PASSWORD.to_owned(),
        site_admin,
    };
    let scopes = Scopes::parse(scopes).expect("these are scopes");
    in_runtime(async {
        let forge = open(server).await;
        let user = add_user(&forge, request).await.expect("the account can be added");
        let token = add_token(&forge, &Caller::anonymous(None), user, "test", scopes, None).await;
        sequencer::catch_up(&forge).await.expect("the logs can be numbered");
        forge.close().await;
        token.expect("the token can be made")
    })
}

/// The options for a store on the server's database.
pub fn store_options(server: &Server) -> Options {
    match server.database().url() {
        Some(url) => Options::postgres(url),
        None => Options::sqlite(server.data_dir().join("abide.db")),
    }
}

async fn open(server: &Server) -> Forge {
    let data = server.data_dir();
    let layout = Layout::new(data);
    let git = Git::detect(Path::new("git"), &layout, GitLimits::default()).await.expect("git is there");
    let options = Options { connections: 1, ..store_options(server) };
    let store = Store::open(&options, Arc::new(SystemClock)).await.expect("the server's database can be opened");
    let key = secret::load_or_create(data, &OsRandom).expect("the server has a key");
    let settings = Settings {
        people: PeopleSettings { password_cost: Cost::Least, ..PeopleSettings::default() },
        ..Settings::default()
    };
    Forge::new(store, git, layout, Arc::new(OsRandom), settings, Node::command("beside"), key)
}
