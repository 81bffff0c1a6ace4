//! Site administration of accounts and its limits; tokens and keys.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::rig_with;
use abide_core::InputError as _;
use abide_core::account::AdminRefusal;
use abide_core::scope::Scopes;
use abide_forge::accounts::add_token::{AddTokenError, add_token};
use abide_forge::accounts::admin::{self, AdminError, AuditFilter};
use abide_forge::accounts::login::LoginError;
use abide_forge::accounts::ssh_keys::{self, AddKeyError};
use abide_forge::accounts::{authenticate, tokens};
use abide_forge::repos::Page;
use abide_forge::{Access, By, Caller};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const ALL: Page = Page { limit: 50, offset: 0 };

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn to_everyone_else_none_of_it_is_there(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (root, alice) = (rig.add("admin-1", true).await, rig.add("alice", false).await);
    let (root, alice) = (rig.viewer(root).await, rig.viewer(alice).await);
    let weak = Caller { scopes: Some(Scopes::parse("repo,user").expect("scopes")), ..root.caller.clone() };
    assert!(matches!(By::admin(&weak), Err(Access::Scope(_))));
    let wide = Caller { scopes: Some(Scopes::parse("admin").expect("scopes")), ..root.caller.clone() };
    let by = By::admin(&wide).expect("an admin");
    assert_eq!(admin::users(&rig.forge, &by, None, ALL).await.expect("readable").1, 2);

    for caller in [&alice.caller, &Caller::anonymous(LOOPBACK)] {
        let forge = &rig.forge;
        // The accounts, the audit log and the jobs ask for this proof.
        assert!(matches!(By::admin(caller), Err(Access::NotFound)));
        for refused in [
            admin::suspend(forge, caller, root.user.id).await,
            admin::unsuspend(forge, caller, root.user.id).await,
            admin::set_admin(forge, caller, alice.user.id, true).await,
        ] {
            assert!(matches!(refused, Err(AdminError::Access(Access::NotFound))));
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_finds_suspends_and_promotes_people(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (root, alice) = (rig.add("admin-1", true).await, rig.add("alice", false).await);
    let root = rig.viewer(root).await;
    let open = cookie(rig.login("alice", PASSWORD).await);
    let by = By::admin(&root.caller).expect("an admin");
    let (found, total) = admin::users(&rig.forge, &by, Some("LIC"), ALL).await.expect("an admin");
    assert_eq!((found[0].user.id, found[0].user.email.as_deref(), total), (alice, Some("alice@example.org"), 1));

    for _ in 0..2 {
        admin::suspend(&rig.forge, &root.caller, alice).await.expect("suspended");
    }
    assert!(rig.by_cookie(&open).await.is_none());
    assert!(matches!(rig.login("alice", PASSWORD).await, Err(LoginError::Suspended)));
    admin::unsuspend(&rig.forge, &root.caller, alice).await.expect("lifted");
    cookie(rig.login("alice", PASSWORD).await);
    admin::set_admin(&rig.forge, &root.caller, alice, true).await.expect("promoted");
    let alice = rig.viewer(alice).await;
    By::admin(&alice.caller).expect("an admin");
    assert_eq!(rig.audited("user_suspended").await, 1, "what holds already tells nothing");

    let nobody = admin::suspend(&rig.forge, &root.caller, abide_core::UserId::new(404)).await;
    assert!(matches!(nobody, Err(AdminError::Access(Access::NotFound))));
    let filter = AuditFilter { actor: Some("admin-1".into()), action: Some("user_suspended".into()), repo: None };
    let rows = admin::audit(&rig.forge, &by, &filter, None, 10).await.expect("an admin");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].actor.as_ref().map(|name| name.as_str()), Some("admin-1"));
    assert_eq!(rows[0].record.ip.as_deref(), Some("127.0.0.1"));
    for filter in [
        AuditFilter { actor: Some("nobody".into()), ..AuditFilter::default() },
        AuditFilter { repo: Some("alice/never".into()), ..AuditFilter::default() },
        AuditFilter { repo: Some("nonsense".into()), ..AuditFilter::default() },
    ] {
        assert!(admin::audit(&rig.forge, &by, &filter, None, 10).await.expect("an admin").is_empty());
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn somebody_is_always_left_to_administer_the_site(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (one, two) = (rig.add("admin-1", true).await, rig.add("admin-2", true).await);
    let (one, two) = (rig.viewer(one).await, rig.viewer(two).await);
    let (first, second) = (one.user.id, two.user.id);
    let oneself = admin::suspend(&rig.forge, &one.caller, first).await;
    assert!(matches!(oneself, Err(AdminError::Refused(AdminRefusal::Yourself))));
    admin::set_admin(&rig.forge, &one.caller, second, false).await.expect("an ordinary account");
    let last = admin::set_admin(&rig.forge, &one.caller, first, false).await;
    assert!(matches!(last, Err(AdminError::Refused(AdminRefusal::LastAdmin))));
    // A removed administrator has no rights, even in a request that began before.
    let stale = admin::suspend(&rig.forge, &two.caller, first).await;
    assert!(matches!(stale, Err(AdminError::Access(Access::NotFound))));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_admins_cannot_remove_each_other_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (one, two) = (rig.add("admin-1", true).await, rig.add("admin-2", true).await);
    let (one, two) = (rig.viewer(one).await, rig.viewer(two).await);
    for _ in 0..10 {
        let (forge, first, second) = (&rig.forge, one.user.id, two.user.id);
        let (by_one, by_two) = tokio::join!(
            admin::set_admin(forge, &one.caller, second, false),
            admin::set_admin(forge, &two.caller, first, false),
        );
        assert!(by_one.is_ok() != by_two.is_ok(), "exactly one");
        let (left, gone) = if by_one.is_ok() { (&one, second) } else { (&two, first) };
        admin::set_admin(forge, &left.caller, gone, true).await.expect("promoted again");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn tokens_say_what_they_are_for_end_and_are_so_many(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.accounts.tokens = 2).await;
    let (alice, bob) = (rig.add("alice", false).await, rig.add("bob", false).await);
    let (viewer, bob) = (rig.viewer(alice).await, rig.viewer(bob).await);
    let scopes = || Scopes::parse("repo").expect("scopes");
    let now = rig.store.clock().now();
    let hour = now.plus(Duration::from_secs(3600));
    let add = async |label: &str, end| add_token(&rig.forge, &viewer.caller, alice, label, scopes(), end).await;
    for label in ["", "  ", "a\nb", &"x".repeat(201)] {
        assert_eq!(add(label, None).await.expect_err("refused").field(), Some("label"));
    }
    assert_eq!(add("laptop", Some(now)).await.expect_err("refused").field(), Some("expires"));
    let secret = add(" laptop ", Some(hour)).await.expect("added");
    add("desktop", None).await.expect("added");
    assert!(matches!(add("third", None).await, Err(AddTokenError::TooMany(2))));
    let opens = async || authenticate::by_token(&rig.forge, &secret, None).await.expect("readable").is_some();
    assert!(opens().await);
    rig.clock.advance(Duration::from_secs(3600));
    assert!(!opens().await, "it has ended");
    add("third", None).await.expect("what has ended does not count");

    let all = tokens::list(&rig.forge, alice).await.expect("readable");
    assert_eq!((all[0].label.as_str(), all.len()), ("laptop", 3));
    let id = all[1].id;
    assert!(!tokens::revoke(&rig.forge, &bob.caller, bob.user.id, id).await.expect("writable"), "not his");
    assert!(tokens::revoke(&rig.forge, &viewer.caller, alice, id).await.expect("writable"));
    assert_eq!((rig.audited("token_created").await, rig.audited("token_revoked").await), (3, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_so_many_keys_and_no_more(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const KEYS: [&str; 2] = [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f one",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/ two",
    ];
    let rig = rig_with(engine, |settings| settings.accounts.ssh_keys = 1).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let add = async |title: &str, line: &str| ssh_keys::add(&rig.forge, &viewer.caller, id, title, line).await;
    assert_eq!(add("", "nonsense").await.expect_err("refused").field(), Some("key"));
    assert_eq!(add("a\nb", KEYS[0]).await.expect_err("refused").field(), Some("title"));
    add("", KEYS[0]).await.expect("added");
    let refused = add("", KEYS[1]).await.expect_err("refused");
    assert!(matches!(refused, AddKeyError::TooMany(1)) && refused.field() == Some("key"));
}
