//! Forks and first commits, where a scenario over the network could not arrange or see enough.

use crate::log::count_of_kind;
use crate::rig::{Rig, rig};
use abide_core::repo::Visibility;
use abide_forge::repos::create::{self, Init};
use abide_forge::repos::fork::{self, ForkError, Request};
use abide_forge::repos::{Repo, search, topics};
use abide_forge::{Access, Caller, doctor};
use abide_testkit::Engine;
use rstest::rstest;

fn named(name: &str) -> Request {
    Request { name: Some(name.into()), ..Request::default() }
}

async fn created(rig: &Rig, caller: &Caller, name: &str, init: Init) -> Repo {
    let request = create::Request {
        name: name.into(),
        description: "All about it".into(),
        visibility: Visibility::Public,
        default_branch: None,
        init: Some(init),
    };
    create::create(&rig.forge, caller, request).await.expect("the repository is created").repo
}

async fn assert_healthy(rig: &Rig) {
    let report = doctor::examine(&rig.forge).await.expect("examined");
    assert_eq!(report.findings, []);
}

async fn count(rig: &Rig, repo: &Repo, kind: &str) -> i64 {
    count_of_kind(&rig.store, repo.id, kind).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_first_commit_is_a_push_of_its_owner(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let alice = rig.user("alice").await;
    let init = Init { readme: true, licence: Some("MIT".into()), gitignore: Some("rust".into()) };
    let repo = created(&rig, &alice, "tool", init).await;

    assert_eq!(rig.git(repo.id, &["show", "main:README.md"]), "# tool\n\nAll about it");
    assert!(rig.git(repo.id, &["show", "main:LICENSE"]).contains("Copyright (c) 20"));
    assert!(rig.git(repo.id, &["show", "main:LICENSE"]).contains(" alice\n"));
    assert!(rig.git(repo.id, &["show", "main:.gitignore"]).contains("/target/"));
    assert_eq!(rig.git(repo.id, &["log", "--format=%an %ae %s"]), "alice alice@users.noreply.127.0.0.1 Initial commit");
    rig.git(repo.id, &["fsck", "--strict", "--full"]);
    assert!(repo.pushed_at.is_some() && repo.refs_generation == 2, "{repo:?}");
    assert_eq!(count(&rig, &repo, "push").await, 1);
    assert_healthy(&rig).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_template_is_named_and_nothing_is_created(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let alice = rig.user("alice").await;
    for init in [
        Init { licence: Some("../mit".into()), ..Init::default() },
        Init { readme: true, gitignore: Some("Cobol".into()), ..Init::default() },
    ] {
        let request = create::Request {
            name: "tool".into(),
            description: String::new(),
            visibility: Visibility::Public,
            default_branch: None,
            init: Some(init),
        };
        let refused = create::create(&rig.forge, &alice, request).await;
        assert!(matches!(refused, Err(create::CreateError::Template(_))), "{refused:?}");
    }
    let empty = created(&rig, &alice, "tool", Init { licence: Some(String::new()), ..Init::default() }).await;
    assert_eq!(empty.pushed_at, None, "an empty choice is none");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_branches_and_tags_and_objects_of_its_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let bob = rig.user("bob").await;
    let (source, commit) = rig.repo_with_commit().await;
    rig.git(source.id, &["update-ref", "refs/heads/deep/er", &commit]);
    rig.git(source.id, &["update-ref", "refs/pull/1/head", &commit]);
    rig.git(source.id, &["tag", "-a", "-m", "one", "v1", &commit]);

    let made = fork::fork(&rig.forge, &bob, &source, Request::default()).await.expect("forked");

    assert!(!made.existed);
    let fork = made.repo;
    assert_eq!((fork.slug(), fork.fork_of), ("bob/project".into(), Some(source.id)));
    let refs = |repo: &Repo| rig.git(repo.id, &["for-each-ref", "--format=%(refname) %(objectname) %(*objectname)"]);
    let kept: Vec<_> = refs(&source).lines().filter(|line| !line.starts_with("refs/pull")).map(str::to_owned).collect();
    assert_eq!(refs(&fork).lines().collect::<Vec<_>>(), kept);
    assert_eq!(rig.git(fork.id, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert!(!rig.dir(fork.id).join("objects/info/alternates").exists());
    std::fs::remove_dir_all(rig.dir(source.id).join("objects")).expect("there");
    rig.git(fork.id, &["fsck", "--strict", "--full"]);
    assert_eq!(count(&rig, &fork, "repo_forked").await, 1);
    assert_eq!(std::fs::read_dir(rig.database.data_dir().join("incoming")).expect("there").count(), 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn forking_again_gives_the_fork_that_is_there_even_at_the_same_moment(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let bob = rig.user("bob").await;
    let (source, _) = rig.repo_with_commit().await;
    let once = |name: &'static str| {
        let (forge, bob, source) = (rig.forge.clone(), bob.clone(), source.clone());
        tokio::spawn(async move { fork::fork(&forge, &bob, &source, named(name)).await.expect("forked") })
    };
    let tasks = [once("a"), once("b"), once("c"), once("d")];
    let mut made = Vec::new();
    for task in tasks {
        made.push(task.await.expect("the task ends"));
    }
    assert_eq!(made.iter().filter(|forked| !forked.existed).count(), 1, "{made:?}");
    assert!(made.iter().all(|forked| forked.repo.id == made[0].repo.id), "{made:?}");
    assert!(once("e").await.expect("the task ends").existed);
    assert_healthy(&rig).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_forked_says_why_and_leaves_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (source, _) = rig.repo_with_commit().await;
    let alice = rig.caller("alice").await;
    let bob = rig.user("bob").await;
    let empty = created(&rig, &alice, "empty", Init::default()).await;
    let taken = created(&rig, &bob, "project", Init::default()).await;
    let fork = async |caller: &Caller, source: &Repo, request| fork::fork(&rig.forge, caller, source, request).await;

    let anonymous = fork(&Caller::anonymous(None), &source, Request::default()).await;
    assert!(matches!(anonymous, Err(ForkError::Access(Access::Denied(_)))), "{anonymous:?}");
    assert!(matches!(fork(&bob, &empty, Request::default()).await, Err(ForkError::Empty)));
    assert!(matches!(fork(&bob, &source, Request::default()).await, Err(ForkError::NameTaken)), "{taken:?}");
    assert!(matches!(fork(&bob, &source, named("-")).await, Err(ForkError::InvalidName(_))));
    assert!(matches!(fork(&alice, &source, Request::default()).await, Err(ForkError::NameTaken)), "one's own");
    assert_healthy(&rig).await;

    let own = fork(&alice, &source, named("second")).await.expect("under another name");
    assert_eq!(own.repo.slug(), "alice/second");
    let private = Repo { visibility: Visibility::Private, ..source };
    let hidden = fork(&bob, &private, named("mine")).await;
    assert!(matches!(hidden, Err(ForkError::Access(Access::NotFound))), "{hidden:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_may_be_of_the_default_branch_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let bob = rig.user("bob").await;
    let (source, commit) = rig.repo_with_commit().await;
    rig.git(source.id, &["update-ref", "refs/heads/other", &commit]);
    let request = Request { default_branch_only: true, ..Request::default() };
    let forked = fork::fork(&rig.forge, &bob, &source, request).await.expect("forked");
    assert_eq!(rig.git(forked.repo.id, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn topics_are_told_once_and_found(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let alice = rig.user("alice").await;
    let bob = rig.user("bob").await;
    let repo = created(&rig, &alice, "tool", Init::default()).await;
    let typed = ["Git".to_owned(), "forge".to_owned()];

    for _ in 0..2 {
        topics::replace(&rig.forge, &alice, &repo, &typed).await.expect("replaced");
    }
    let denied = topics::replace(&rig.forge, &bob, &repo, &typed).await;
    assert!(matches!(denied, Err(topics::TopicsError::Access(Access::Denied(_)))), "{denied:?}");
    assert_eq!(count(&rig, &repo, "repo_topics_changed").await, 1);
    let query =
        search::Query { text: "topic:git user:alice".into(), topic: None, owner: None, sort: search::Sort::BestMatch };
    let page = abide_forge::repos::Page { limit: 10, offset: 0 };
    let (found, total) = search::search(&rig.forge, &bob, &query, page).await.expect("found");
    assert_eq!((found.len(), total), (1, 1));
    assert_eq!(topics::of(&rig.forge, &found[0]).await.expect("readable").len(), 2);
}
