//! Whatever strangers send where a cookie, a link or a ticket is expected opens nothing and breaks nothing.

use super::{LOOPBACK, open_site};
use abide_forge::accounts::login::{self, LoginError};
use abide_forge::accounts::{invites, reset, sessions, setup, verify};
use abide_testkit::Engine;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn nothing_that_was_not_given_out_opens_anything() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let rig = runtime.block_on(open_site(Engine::Sqlite));
    let forge = &rig.forge;
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let text = prop_oneof![".{0,200}", "[A-Za-z0-9_-]{43}", "[A-Za-z0-9_-]{64}", "[A-Za-z0-9+/=]{0,100}"];
    let ran = runner.run(&text, |text| {
        runtime.block_on(async {
            prop_assert!(sessions::by_cookie(forge, &text, LOOPBACK).await.expect("readable").is_none());
            prop_assert!(!verify::is_open(forge, &text).await.expect("readable"));
            prop_assert!(!reset::is_open(forge, &text).await.expect("readable"));
            prop_assert!(!setup::is_open(forge, &text).await.expect("readable"));
            prop_assert!(!invites::is_open(forge, &text).await.expect("readable"));
            prop_assert!(!sessions::csrf_matches(forge, "a cookie", &text));
            let second = login::second_factor(forge, &text, &text, &text, LOOPBACK).await;
            prop_assert!(matches!(second, Err(LoginError::Wrong)));
            Ok(())
        })
    });
    ran.expect("nothing opens");
}
