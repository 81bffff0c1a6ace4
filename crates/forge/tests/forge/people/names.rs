//! Name and profile of an account.

use super::{LOOPBACK, PASSWORD, open_site};
use crate::rig::rig_with;
use abide_core::InputError as _;
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_forge::By;
use abide_forge::accounts::profile::{self, ProfileError};
use abide_forge::accounts::rename::{self, RenameError};
use abide_forge::accounts::{self, admin};
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{create, list};
use abide_forge::{Access, Caller};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_account_and_its_repositories_are_found_under_the_old_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    for (name, visibility) in [("open", Visibility::Public), ("secret", Visibility::Private)] {
        let request = create::Request {
            name: name.into(),
            description: String::new(),
            visibility,
            default_branch: None,
            init: None,
        };
        create::create(&rig.forge, &viewer.caller, request).await.expect("created");
    }
    let wrong = rename::rename(&rig.forge, &viewer, "ada", "wrong horse battery".into()).await;
    assert_eq!(wrong.expect_err("refused").field(), Some("current_password"));
    let new = rename::rename(&rig.forge, &viewer, " Ada ", PASSWORD.into()).await.expect("renamed");
    assert_eq!(new.as_str(), "ada");

    let old = "alice".parse().expect("a name");
    assert!(accounts::find(&rig.forge, &old).await.expect("readable").is_none());
    let found = accounts::find_by_any_name(&rig.forge, &old).await.expect("readable").expect("found");
    assert_eq!((found.id, found.name), (id, Some(new)));
    let stranger = Caller::anonymous(LOOPBACK);
    let opened = async |caller: &Caller, owner: &str, name: &str| {
        open::open(&rig.forge, caller, &RepoLocator::slug(owner, name), Action::RepoRead).await.map(|repo| repo.slug())
    };
    assert_eq!(opened(&stranger, "alice", "open").await.expect("readable"), "ada/open");
    assert_eq!(opened(&stranger, "ada", "open").await.expect("readable"), "ada/open");
    assert_eq!(opened(&viewer.caller, "alice", "secret").await.expect("readable"), "ada/secret");
    for name in ["secret", "never"] {
        assert!(matches!(opened(&stranger, "alice", name).await, Err(Access::NotFound)), "{name}");
    }
    let page = abide_forge::repos::Page { limit: 10, offset: 0 };
    assert_eq!(list::of_owner(&rig.forge, &stranger, id, page).await.expect("readable").1, 1);
    let names = rename::redirects(&rig.forge, &viewer).await.expect("readable");
    assert_eq!(names[0].name, old);
    assert_eq!(rig.audited("user_renamed").await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_is_kept_for_its_holder_until_an_admin_releases_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (alice, bob) = (rig.add("alice", false).await, rig.add("bob", false).await);
    let root = rig.add("admin-1", true).await;
    let (alice, bob, root) = (rig.viewer(alice).await, rig.viewer(bob).await, rig.viewer(root).await);
    let rename = async |viewer, name: &str| rename::rename(&rig.forge, viewer, name, PASSWORD.into()).await;
    rename(&alice, "ada").await.expect("renamed");
    for name in ["alice", "ada"] {
        let refused = rename(&bob, name).await.expect_err("refused");
        assert_eq!(refused.field(), Some("name"), "{refused}");
    }
    let taken = rig.try_sign_up("alice", "new@example.org", None).await.expect_err("refused");
    assert_eq!(taken.field(), Some("name"));
    assert_eq!(rename(&bob, "a_b").await.expect_err("refused").field(), Some("name"));
    assert!(matches!(rename(&bob, "BOB").await, Err(RenameError::Same)));

    let old = "alice".parse().expect("a name");
    assert!(matches!(By::admin(&bob.caller), Err(Access::NotFound)));
    let by = By::admin(&root.caller).expect("an admin");
    assert_eq!(admin::old_names(&rig.forge, &by, alice.user.id).await.expect("readable").len(), 1);
    assert!(admin::release_name(&rig.forge, &by, &old).await.expect("writable"));
    assert!(!admin::release_name(&rig.forge, &by, &old).await.expect("writable"));
    rename(&bob, "alice").await.expect("renamed");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_cannot_collect_names(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.accounts.old_names = 2).await;
    let id = rig.add("one", false).await;
    let viewer = rig.viewer(id).await;
    let rename = async |name: &str| rename::rename(&rig.forge, &viewer, name, PASSWORD.into()).await;
    rename("two").await.expect("renamed");
    rename("three").await.expect("renamed");
    assert!(matches!(rename("four").await, Err(RenameError::TooMany(2))));
    let still = accounts::by_id(&rig.forge, id).await.expect("readable").expect("there");
    assert_eq!(still.name.as_ref().map(|name| name.as_str()), Some("three"), "nothing changed");
    rename("one").await.expect("one's own old name can be taken again");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_edited_by_its_owner_and_says_which_field_is_wrong(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let request = profile::Request {
        display_name: " Alice ".into(),
        bio: "builds things".into(),
        website: "https://example.org/~alice".into(),
        location: String::new(),
    };
    for _ in 0..2 {
        profile::edit(&rig.forge, &viewer.caller, request.clone()).await.expect("edited");
    }
    assert_eq!(rig.audited("profile_edited").await, 1, "what holds already tells nothing");
    let user = accounts::by_id(&rig.forge, id).await.expect("readable").expect("there");
    assert_eq!((user.display_name.as_deref(), user.website.as_str()), (Some("Alice"), "https://example.org/~alice"));

    let bad = profile::Request { website: "javascript:alert(1)".into(), ..request.clone() };
    assert_eq!(profile::edit(&rig.forge, &viewer.caller, bad).await.expect_err("refused").field(), Some("website"));
    let nobody = profile::edit(&rig.forge, &Caller::anonymous(None), request.clone()).await;
    assert!(matches!(nobody, Err(ProfileError::Access(Access::Denied(_)))));
    let none = profile::Request { display_name: String::new(), ..request };
    profile::edit(&rig.forge, &viewer.caller, none).await.expect("edited");
    let user = accounts::by_id(&rig.forge, id).await.expect("readable").expect("there");
    assert_eq!(user.display_name, None);
}
