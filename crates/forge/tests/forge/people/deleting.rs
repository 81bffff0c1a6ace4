//! Deleting an account: what ends at once, what stays, and who cannot.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::Rig;
use abide_core::account::DeleteRefusal;
use abide_core::policy::Action;
use abide_core::repo::{Role, Visibility};
use abide_core::scope::Scopes;
use abide_forge::By;
use abide_forge::accounts::add_token::add_token;
use abide_forge::accounts::confirm::ConfirmError;
use abide_forge::accounts::delete::{self, DeleteError, Remains};
use abide_forge::accounts::{self, admin, authenticate, suspend};
use abide_forge::attention::star;
use abide_forge::issues::{self, comment};
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{Repo, collaborators, create, restore, transfer};
use abide_forge::{Access, Caller};
use abide_store::issues::comments;
use abide_testkit::Engine;
use rstest::rstest;

async fn repo(rig: &Rig, owner: &Caller, name: &str) -> Repo {
    let request = create::Request {
        name: name.into(),
        description: String::new(),
        visibility: Visibility::Public,
        default_branch: None,
        init: None,
    };
    create::create(&rig.forge, owner, request).await.expect("created").repo
}

async fn leads(rig: &Rig, slug: (&str, &str)) -> Option<i64> {
    let locator = RepoLocator::slug(slug.0, slug.1);
    open::open(&rig.forge, &Caller::anonymous(None), &locator, Action::RepoRead).await.ok().map(|repo| repo.id.get())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_opens_nothing_and_its_repositories_can_be_brought_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (id, bob) = (rig.add("alice", false).await, rig.user("bob").await);
    rig.add("boss", true).await;
    let alice = rig.caller("alice").await;
    let session = cookie(rig.login("alice", PASSWORD).await);
    let scopes = Scopes::parse("repo").expect("scopes");
    let token = add_token(&rig.forge, &alice, id, "laptop", scopes, None).await.expect("made");
    let (tool, given) = (repo(&rig, &alice, "tool").await, repo(&rig, &alice, "given").await);
    transfer::hand_over(&rig.forge, &Caller::operator(), &given, "bob").await.expect("handed over");
    let offered = repo(&rig, &bob, "offered").await;
    transfer::offer(&rig.forge, &bob, &offered, "alice").await.expect("offered");
    star::star(&rig.forge, &alice, &offered).await.expect("starred");
    let user = accounts::by_id(&rig.forge, id).await.expect("readable").expect("there");
    collaborators::set(&rig.forge, &bob, &offered, &user, Role::Write).await.expect("shared");
    let new = issues::create::Request { title: "A matter".into(), body: "By alice.".into(), ..Default::default() };
    let issue = issues::create::create(&rig.forge, &alice, &offered, new).await.expect("opened");

    let viewer = rig.viewer(id).await;
    let wrong = delete::delete_own(&rig.forge, &viewer, "alice", "not it".into(), Remains::Kept).await;
    assert!(matches!(wrong, Err(DeleteError::Confirm(ConfirmError::Wrong))), "{wrong:?}");
    let unsure = delete::delete_own(&rig.forge, &viewer, "alise", PASSWORD.into(), Remains::Kept).await;
    assert!(matches!(unsure, Err(DeleteError::Unconfirmed)), "{unsure:?}");
    assert!(rig.by_cookie(&session).await.is_some(), "nothing happened");
    delete::delete_own(&rig.forge, &viewer, "Alice", PASSWORD.into(), Remains::Kept).await.expect("deleted");

    assert!(rig.by_cookie(&session).await.is_none());
    assert!(authenticate::by_token(&rig.forge, &token, LOOPBACK).await.expect("readable").is_none());
    assert!(rig.login("alice", PASSWORD).await.is_err() && rig.login("alice@example.org", PASSWORD).await.is_err());
    let taken = rig.try_sign_up("alice", "eve@example.org", None).await.expect_err("the name stays taken");
    assert!(taken.to_string().contains("name"), "{taken}");
    rig.try_sign_up("carol", "alice@example.org", None).await.expect("the address is free");
    let name = "alice".parse().expect("a name");
    assert!(accounts::find_by_any_name(&rig.forge, &name).await.expect("readable").is_none(), "nobody is behind it");

    assert_eq!(leads(&rig, ("alice", "tool")).await, None);
    assert_eq!(leads(&rig, ("alice", "given")).await, Some(given.id.get()), "the links of what she gave away hold");
    let issue = issues::show::show(&rig.forge, &offered, &issue.number.to_string()).await.expect("it stays");
    assert_eq!((issue.title.as_str(), issue.author_name), ("A matter", None), "a ghost wrote it");
    let offered = open::open(&rig.forge, &bob, &RepoLocator::Id(offered.id.to_string()), Action::RepoRead).await;
    let offered = offered.expect("there");
    assert_eq!(offered.star_count, 0);
    assert!(
        transfer::pending(&rig.forge, &bob, &offered).await.expect("readable").is_none(),
        "the transfer offer is already declined"
    );
    let back = restore::restore(&rig.forge, &Caller::operator(), &tool.id.to_string(), None).await.expect("restored");
    transfer::hand_over(&rig.forge, &Caller::operator(), &back, "bob").await.expect("handed over");
    assert_eq!(leads(&rig, ("alice", "tool")).await, Some(tool.id.get()), "and leads on from its old address");
    assert_eq!(abide_forge::doctor::examine(&rig.forge).await.expect("examined").findings, []);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_deleted_account_wrote_goes_if_it_wants_that(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (alice, bob, boss) = (rig.user("alice").await, rig.user("bob").await, rig.add("boss", true).await);
    let tool = repo(&rig, &bob, "tool").await;
    let new =
        |title: &str| issues::create::Request { title: title.into(), body: "Some text.".into(), ..Default::default() };
    let hers = issues::create::create(&rig.forge, &alice, &tool, new("Marmalade")).await.expect("opened");
    let his = issues::create::create(&rig.forge, &bob, &tool, new("Honey")).await.expect("opened");
    for issue in [&hers, &his] {
        comment::add(&rig.forge, &alice, &tool, issue.number, "Marmalade!").await.expect("said");
        comment::add(&rig.forge, &bob, &tool, issue.number, "Honey!").await.expect("said");
    }
    let boss = rig.viewer(boss).await;
    let id = alice.user_id().expect("an account");
    delete::delete_by_admin(&rig.forge, &boss.caller, id, Remains::Removed).await.expect("deleted");
    rig.run_jobs().await;
    let show = async |number: i64| issues::show::show(&rig.forge, &tool, &number.to_string()).await.expect("there");
    let (hers, his) = (show(hers.number).await, show(his.number).await);
    assert_eq!((hers.title.as_str(), hers.body.as_str(), hers.comment_count), ("Removed", "", 1));
    assert_eq!((his.title.as_str(), his.comment_count), ("Honey", 1));
    let mut conn = rig.store.read().await.expect("readable");
    let page = abide_forge::repos::Page { limit: 10, offset: 0 };
    for issue in [&hers, &his] {
        let (left, _) = comments::of_issue(&mut conn, issue.id, None, page).await.expect("readable");
        assert_eq!(left.iter().map(|one| one.body.as_str()).collect::<Vec<_>>(), ["Honey!"]);
    }
    let again = delete::delete_by_admin(&rig.forge, &boss.caller, id, Remains::Kept).await;
    assert!(matches!(again, Err(DeleteError::Access(Access::NotFound))), "{again:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_and_who_is_suspended_stay(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (boss, alice) = (rig.add("boss", true).await, rig.add("alice", false).await);
    let viewer = rig.viewer(boss).await;
    let refused = |end: Result<(), DeleteError>| match end {
        Err(DeleteError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let own = delete::delete_own(&rig.forge, &viewer, "boss", PASSWORD.into(), Remains::Kept).await;
    assert_eq!(refused(own), DeleteRefusal::LastAdmin);
    let by_operator = delete::delete_by_operator(&rig.forge, boss, Remains::Kept).await;
    assert_eq!(refused(by_operator), DeleteRefusal::LastAdmin);
    let theirs = delete::delete_by_admin(&rig.forge, &viewer.caller, boss, Remains::Kept).await;
    assert_eq!(refused(theirs), DeleteRefusal::Yourself);
    let member = rig.viewer(alice).await;
    suspend::set_suspended(&rig.forge, alice, true).await.expect("suspended");
    let own = delete::delete_own(&rig.forge, &member, "alice", PASSWORD.into(), Remains::Kept).await;
    assert_eq!(refused(own), DeleteRefusal::Suspended);
    let stranger = delete::delete_by_admin(&rig.forge, &member.caller, boss, Remains::Kept).await;
    assert!(matches!(stranger, Err(DeleteError::Access(Access::NotFound))), "{stranger:?}");
    delete::delete_by_admin(&rig.forge, &viewer.caller, alice, Remains::Kept).await.expect("an admin may");
    let by = By::admin(&viewer.caller).expect("an admin");
    let (found, total) =
        admin::users(&rig.forge, &by, None, abide_forge::repos::Page { limit: 9, offset: 0 }).await.expect("an admin");
    assert_eq!((found.len(), total), (1, 1));
}
