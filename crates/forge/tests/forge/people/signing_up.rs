//! Making an account: open, closed, by invitation, and the first admin.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::{Rig, node_with, rig_with};
use abide_core::InputError as _;
use abide_core::account::SignUpMode;
use abide_forge::Access;
use abide_forge::By;
use abide_forge::accounts::invites::{self, InviteError};
use abide_forge::accounts::setup::{self, SetUpError};
use abide_forge::accounts::sign_up::SignUpError;
use abide_forge::accounts::{self, emails, verify};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_signs_up_can_log_in_and_verifies_their_address_by_mail(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.sign_up("alice").await;
    let viewer = rig.by_cookie(&cookie(rig.login("alice", PASSWORD).await)).await.expect("logged in");
    assert_eq!((viewer.user.id, viewer.user.site_admin), (id, false));
    let verified = async || emails::list(&rig.forge, &viewer).await.expect("readable")[0].verified_at.is_some();
    assert!(!verified().await);

    let mails = rig.mails().await;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "alice@example.org"));
    let token = mails[0].token("verify");
    assert!(verify::is_open(&rig.forge, &token).await.expect("readable"));
    assert!(verify::confirm(&rig.forge, &token).await.expect("writable"));
    assert!(verified().await);
    assert!(!verify::is_open(&rig.forge, &token).await.expect("readable"));
    assert!(!verify::confirm(&rig.forge, &token).await.expect("writable"), "once");
    assert_eq!((rig.audited("user_created").await, rig.audited("email_verified").await), (1, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_names_its_field_and_its_rule(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    rig.sign_up("alice").await;
    for (name, email, field) in [
        ("a_b", "b@example.org", "name"),
        ("login", "b@example.org", "name"),
        ("ALICE", "b@example.org", "name"),
        ("bob", "nonsense", "email"),
        ("bob", "Alice@Example.org", "email"),
    ] {
        let refused = rig.try_sign_up(name, email, None).await.expect_err("refused");
        assert_eq!(refused.field(), Some(field), "{name} {email}: {refused}");
        assert!(!refused.to_string().contains(&format!("{field}: ")), "the field is data: {refused}");
    }
    assert_eq!(rig.audited("user_created").await, 1, "nothing half-done remains");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_site_takes_nobody(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.signup.mode = SignUpMode::Closed).await;
    let refused = rig.try_sign_up("alice", "alice@example.org", None).await;
    assert!(matches!(refused, Err(SignUpError::Closed)));
    let invited = invites::create(&rig.forge, &By::Operator, None).await;
    assert!(matches!(invited, Err(InviteError::Closed)), "nor would an invitation help");
}

fn invite_token(link: &str) -> String {
    link.strip_prefix("https://git.example.org/invite/").expect("a link").to_owned()
}

async fn invite_site(engine: Engine) -> Rig {
    rig_with(engine, |settings| settings.public_url = "https://git.example.org".into()).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_lets_one_person_in(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = invite_site(engine).await;
    let admin = rig.add("admin-1", true).await;
    let by = By::admin(&rig.viewer(admin).await.caller).expect("an admin");
    for invite in [None, Some("nonsense"), Some("")] {
        let refused = rig.try_sign_up("alice", "alice@example.org", invite).await.expect_err("refused");
        assert_eq!(refused.field(), Some("invite"));
    }

    let link = invites::create(&rig.forge, &by, Some("Alice@Example.org".into())).await.expect("invited");
    let token = invite_token(&link);
    let waiting = invites::list(&rig.forge, &by).await.expect("readable");
    assert_eq!(waiting[0].created_by.as_ref().map(|name| name.as_str()), Some("admin-1"));
    assert_eq!(rig.mails().await[0].token("invite"), token, "it is sent there too");
    // A refused sign-up does not use up the invitation.
    assert!(rig.try_sign_up("admin-1", "alice@example.org", Some(&token)).await.is_err());
    let alice = rig.try_sign_up("alice", "alice@example.org", Some(&token)).await.expect("signed up");
    let again = rig.try_sign_up("bob", "bob@example.org", Some(&token)).await;
    assert!(matches!(again, Err(SignUpError::Invite)));
    assert!(invites::list(&rig.forge, &by).await.expect("readable").is_empty());

    // The link came by mail to that address, so it needs no other proof.
    let viewer = rig.viewer(alice).await;
    assert!(emails::list(&rig.forge, &viewer).await.expect("readable")[0].verified_at.is_some());
    assert!(rig.mails().await.is_empty());

    // Only admins invite, see and take back.
    assert!(matches!(By::admin(&viewer.caller), Err(Access::NotFound)));
    let bad = invites::create(&rig.forge, &by, Some("nonsense".into())).await.expect_err("refused");
    assert_eq!(bad.field(), Some("email"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_can_be_taken_back_and_grows_old(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = invite_site(engine).await;
    let admin = rig.add("admin-1", true).await;
    let by = By::admin(&rig.viewer(admin).await.caller).expect("an admin");
    let link = invites::create(&rig.forge, &by, None).await.expect("invited");
    let id = invites::list(&rig.forge, &by).await.expect("readable")[0].id;
    assert!(invites::revoke(&rig.forge, &by, id).await.expect("writable"));
    assert!(!invites::revoke(&rig.forge, &by, id).await.expect("writable"));
    assert!(rig.try_sign_up("alice", "alice@example.org", Some(&invite_token(&link))).await.is_err());

    let link = invites::create(&rig.forge, &By::Operator, None).await.expect("invited");
    rig.clock.advance(Duration::from_secs(7 * 86_400));
    assert!(rig.try_sign_up("alice", "alice@example.org", Some(&invite_token(&link))).await.is_err());
    assert!(rig.mails().await.is_empty(), "without an address nothing is sent");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sign_ups_from_one_place_are_counted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.signup.per_ip = 2;
    })
    .await;
    rig.sign_up("alice").await;
    assert!(rig.try_sign_up("alice", "b@example.org", None).await.is_err(), "this one counts too");
    let Err(SignUpError::Throttled { retry_after }) = rig.try_sign_up("bob", "bob@example.org", None).await else {
        panic!("admitted")
    };
    rig.clock.advance(retry_after);
    rig.sign_up("bob").await;
}

fn setup_token(link: Option<String>) -> String {
    let link = link.expect("there is no account yet");
    link.strip_prefix("https://git.example.org/setup/").expect("a link").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_admin_comes_by_a_link_that_works_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = invite_site(engine).await;
    let older = setup_token(setup::link(&rig.forge).await.expect("writable"));
    // A later start, of another node, makes another link; the older one is dead.
    let site = |settings: &mut abide_forge::Settings| settings.public_url = "https://git.example.org".into();
    let (other, _) = node_with(&rig.database, &rig.clock, "second", site).await;
    let token = setup_token(setup::link(&other).await.expect("writable"));
    assert!(!setup::is_open(&rig.forge, &older).await.expect("readable"));
    assert!(setup::is_open(&rig.forge, &token).await.expect("readable"));

    let set_up = async |token: &str, name: &str, password: &str| {
        setup::set_up(&rig.forge, LOOPBACK, token, name, "root@example.org", password.into()).await
    };
    assert!(matches!(set_up(&older, "alice", PASSWORD).await, Err(SetUpError::Link)));
    assert!(matches!(set_up("nonsense", "alice", PASSWORD).await, Err(SetUpError::Link)));
    let refused = set_up(&token, "alice", "short").await.expect_err("refused");
    assert_eq!(refused.field(), Some("password"));
    let id = set_up(&token, "alice", PASSWORD).await.expect("set up");
    let admin = accounts::by_id(&rig.forge, id).await.expect("readable").expect("there");
    assert!(admin.site_admin);
    let viewer = rig.viewer(id).await;
    assert!(emails::list(&rig.forge, &viewer).await.expect("readable")[0].verified_at.is_some());
    assert!(matches!(set_up(&token, "bob", PASSWORD).await, Err(SetUpError::Link)), "once");
    assert_eq!(setup::link(&rig.forge).await.expect("readable"), None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_link_outlives_accounts_of_others_and_is_dead_once_there_is_an_admin(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = invite_site(engine).await;
    let token = setup_token(setup::link(&rig.forge).await.expect("writable"));
    // On an open server, anybody may sign up before the operator uses the link.
    rig.add("mallory", false).await;
    assert!(setup::is_open(&rig.forge, &token).await.expect("readable"));
    let token = setup_token(setup::link(&rig.forge).await.expect("the next start prints one too"));
    let id = setup::set_up(&rig.forge, LOOPBACK, &token, "alice", "root@example.org", PASSWORD.into()).await;
    let admin = accounts::by_id(&rig.forge, id.expect("set up")).await.expect("readable").expect("there");
    assert!(admin.site_admin);

    let rig = invite_site(engine).await;
    let token = setup_token(setup::link(&rig.forge).await.expect("writable"));
    rig.add("alice", true).await;
    assert!(!setup::is_open(&rig.forge, &token).await.expect("readable"));
    let late = setup::set_up(&rig.forge, LOOPBACK, &token, "eve", "eve@example.org", PASSWORD.into()).await;
    assert!(matches!(late, Err(SetUpError::Link)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_link_outlives_the_account_of_a_key_that_nobody_can_log_in_to(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = invite_site(engine).await;
    let token = setup_token(setup::link(&rig.forge).await.expect("writable"));
    // Rows after a stranger's first push under their key.
    let made: Result<abide_core::UserId, abide_store::StoreError> =
        rig.store.write((), |tx, ()| Box::pin(abide_store::nostr::repos::user_for(tx, "npub1stranger"))).await;
    made.expect("written");
    assert!(setup::is_open(&rig.forge, &token).await.expect("readable"));
    assert!(setup::link(&rig.forge).await.expect("writable").is_some(), "the next start prints one too");
    let token = setup_token(setup::link(&rig.forge).await.expect("writable"));
    let set_up = setup::set_up(&rig.forge, LOOPBACK, &token, "alice", "root@example.org", PASSWORD.into()).await;
    assert!(set_up.is_ok(), "{set_up:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_use_the_link_at_once_one_becomes_admin(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = invite_site(engine).await;
    let token = setup_token(setup::link(&rig.forge).await.expect("writable"));
    let set_up = async |name: &str| {
        let email = format!("{name}@example.org");
        setup::set_up(&rig.forge, LOOPBACK, &token, name, &email, PASSWORD.into()).await.is_ok()
    };
    let (one, other) = tokio::join!(set_up("alice"), set_up("bob"));
    assert!(one != other, "exactly one");
    assert_eq!(rig.audited("user_created").await, 1);
}
