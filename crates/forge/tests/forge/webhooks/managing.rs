//! Who may have webhooks, and what one may look like.

use super::{change, setup, setup_with};
use crate::rig::Rig;
use abide_core::policy::DenyCode;
use abide_core::repo::Role;
use abide_forge::repos::{Page, collaborators, marks};
use abide_forge::webhooks::{Change, HookError, Secret, ask, create, edit, remove, show};
use abide_forge::{Access, Caller, accounts};
use abide_testkit::Engine;
use rstest::rstest;

const ALL: Page = Page { limit: 100, offset: 0 };

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_administer_a_repository_have_anything_to_do_with_its_hooks(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    let (forge, wanted) = (&setup.rig.forge, change(&setup.receiver.url(), &["push"]));
    let bob = setup.rig.user("bob").await;
    let bobs = accounts::find(forge, &"bob".parse().expect("a name")).await.expect("readable").expect("he exists");
    collaborators::set(forge, &setup.alice, &setup.repo, &bobs, Role::Maintain).await.expect("allowed");
    let locator = abide_forge::repos::open::RepoLocator::Id(setup.repo.id.to_string());
    let action = abide_core::policy::Action::RepoRead;
    let repo = abide_forge::repos::open::open(forge, &bob, &locator, action).await.expect("he may read");
    let denied = |result: Result<(), HookError>| {
        let refused = matches!(result, Err(HookError::Access(Access::Denied(DenyCode::RoleTooLow { .. }))));
        assert!(refused, "{result:?}");
    };
    denied(show::list(forge, &bob, &repo, ALL).await.map(drop));
    denied(show::hook(forge, &bob, &repo, &hook.id.to_string()).await.map(drop));
    denied(create::create(forge, &bob, &repo, &wanted).await.map(drop));
    denied(edit::edit(forge, &bob, &repo, hook.id, &wanted).await.map(drop));
    denied(remove::remove(forge, &bob, &repo, hook.id).await);
    denied(ask::ping(forge, &bob, &repo, &hook).await);
    assert_eq!(show::list(forge, &setup.alice, &setup.repo, ALL).await.expect("allowed").1, 1);

    // Another repository's hook is nobody's.
    let other = other_repo(&setup.rig, &setup.alice).await;
    let nothing = show::hook(forge, &setup.alice, &other, &hook.id.to_string()).await;
    assert!(matches!(nothing, Err(HookError::NotFound("webhook"))), "{nothing:?}");
    let nothing = remove::remove(forge, &setup.alice, &other, hook.id).await;
    assert!(matches!(nothing, Err(HookError::NotFound("webhook"))), "{nothing:?}");
    let nothing = ask::ping(forge, &setup.alice, &other, &hook).await;
    assert!(matches!(nothing, Err(HookError::NotFound("webhook"))), "{nothing:?}");

    // Archived: one may look.
    marks::archive(forge, &setup.alice, &setup.repo).await.expect("allowed");
    let archived = setup.again().await;
    assert_eq!(show::list(forge, &setup.alice, &archived, ALL).await.expect("allowed").1, 1);
    let refused = remove::remove(forge, &setup.alice, &archived, hook.id).await;
    assert!(matches!(refused, Err(HookError::Access(Access::Denied(DenyCode::Archived(_))))), "{refused:?}");
}

async fn other_repo(rig: &Rig, alice: &Caller) -> abide_forge::repos::Repo {
    let request = abide_forge::repos::create::Request {
        name: "other".into(),
        description: String::new(),
        visibility: abide_core::repo::Visibility::Public,
        default_branch: None,
        init: None,
    };
    abide_forge::repos::create::create(&rig.forge, alice, request).await.expect("it is created").repo
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_hook_is_refused_by_field_and_rule(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup_with(engine, |it| it.webhooks.per_repo = 1).await;
    let fine = change(&setup.receiver.url(), &["push"]);
    let refused =
        async |change: Change| match create::create(&setup.rig.forge, &setup.alice, &setup.repo, &change).await {
            Err(HookError::Invalid { field, rule }) => format!("{field} {rule}"),
            other => panic!("{other:?}"),
        };
    let url = async |text: &str| refused(Change { url: Some(text.into()), ..fine.clone() }).await;
    assert!(url("ftp://example.org/").await.contains("must start with http:// or https://"));
    assert!(url("https://user:password@example.org/").await.contains("must not contain a user name"));
    assert!(url("nonsense").await.starts_with("url is not a URL"));
    assert!(url("http://169.254.169.254/latest/meta-data/").await.contains("a link-local address"));
    assert!(url("http://127.0.0.2/").await.contains("a loopback address"), "only 127.0.0.1 is allowed");
    assert!(url("http://[::ffff:10.0.0.1]/").await.contains("a private address"));
    assert_eq!(refused(Change { url: None, ..fine.clone() }).await, "url is required");
    assert!(refused(Change { events: Some(vec!["deployment".into()]), ..fine.clone() }).await.starts_with("events"));
    assert!(refused(Change { events: Some(vec![]), ..fine.clone() }).await.contains("at least one event"));
    assert!(refused(Change { content_type: Some("xml".into()), ..fine.clone() }).await.starts_with("content_type"));
    assert!(refused(Change { insecure_ssl: true, ..fine.clone() }).await.contains("always verified"));
    let long = Secret::Set("x".repeat(2000).into());
    assert!(refused(Change { secret: long, ..fine.clone() }).await.starts_with("secret must have at most"));

    create::create(&setup.rig.forge, &setup.alice, &setup.repo, &fine).await.expect("allowed");
    let second = create::create(&setup.rig.forge, &setup.alice, &setup.repo, &fine).await;
    assert!(matches!(second, Err(HookError::TooMany(1))), "{second:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_kept_sealed_and_stays_until_it_is_replaced(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    let sealed = hook.secret.clone().expect("there is one");
    assert!(!sealed.expose().windows(6).any(|part| part == b"Secret"));
    let forge = &setup.rig.forge;
    let kept = Change { active: Some(false), ..Change::default() };
    let after = edit::edit(forge, &setup.alice, &setup.repo, hook.id, &kept).await.expect("allowed");
    assert_eq!((after.secret, after.active, after.events.words()), (Some(sealed), false, vec!["star"]));
    let asked = ask::ping(forge, &setup.alice, &setup.repo, &hook).await;
    assert!(matches!(asked, Err(HookError::Inactive)), "{asked:?}");
    let bare = Change { secret: Secret::Remove, active: Some(true), ..Change::default() };
    edit::edit(forge, &setup.alice, &setup.repo, hook.id, &bare).await.expect("allowed");
    ask::ping(forge, &setup.alice, &setup.repo, &hook).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(setup.receiver.got()[0].header("x-hub-signature-256"), "");
    remove::remove(forge, &setup.alice, &setup.repo, hook.id).await.expect("allowed");
    assert_eq!(show::list(forge, &setup.alice, &setup.repo, ALL).await.expect("allowed").1, 0);
}
