//! Participants are subscribed to the issue and watch its repository, unless they have chosen otherwise.

use super::{World, make, refused, share, world};
use abide_core::WatchLevel::{All, Ignore, Participating};
use abide_core::repo::{Role, Visibility};
use abide_forge::attention::watch;
use abide_forge::issues::change::{Change, Names, change};
use abide_forge::issues::{Issue, IssueError, comment, review};
use abide_forge::repos::Repo;
use abide_store::repos;
use abide_testkit::Engine;
use rstest::rstest;

/// How alice comes to take part.
#[derive(Debug, Clone, Copy)]
enum Part {
    Opens,
    Comments,
    Named,
    NamedInComment,
    Responsible,
    AskedToReview,
}

impl Part {
    fn why(self) -> &'static str {
        match self {
            Self::Opens => "author",
            Self::Comments => "comment",
            Self::Named | Self::NamedInComment => "mention",
            Self::Responsible => "assign",
            Self::AskedToReview => "review_requested",
        }
    }

    /// Lets alice take part; the issue that she then has a part in.
    async fn take(self, world: &World, repo: &Repo, issue: Issue) -> Issue {
        let (forge, number) = (world.forge(), issue.number);
        match self {
            Self::Opens => return world.open_in(&world.alice, repo, "hers", "").await,
            Self::Named => return world.open_in(&world.carol, repo, "other", "cc @alice").await,
            Self::Comments => drop(comment::add(forge, &world.alice, repo, number, "I see").await.expect("said")),
            Self::NamedInComment => {
                comment::add(forge, &world.carol, repo, number, "@alice?").await.expect("said");
            }
            Self::Responsible => {
                let to = Change { assignees: Some(Names::Add(vec!["alice".into()])), ..Change::default() };
                change(forge, &world.bob, repo, number, to).await.expect("assigned");
            }
            Self::AskedToReview => {
                let alice = "alice".parse().expect("a name");
                review::request(forge, &world.bob, repo, number, &alice).await.expect("asked");
            }
        }
        issue
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn taking_part_is_to_hear_and_to_watch_unless_one_chose_otherwise(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Part::Opens, Part::Comments, Part::Named, Part::NamedInComment, Part::Responsible, Part::AskedToReview)]
    part: Part,
) {
    let world = world(engine).await;
    let forge = world.forge();
    for (name, chosen) in [("fresh", None), ("ignored", Some(Ignore)), ("watched", Some(All))] {
        // She owns it, because only who has a part in a repository can be made responsible, and does not watch it.
        let repo = make(forge, &world.alice, name, Visibility::Public).await;
        watch::clear(forge, &world.alice, &repo).await.expect("taken back");
        share(forge, &world.alice, &repo, "bob", Role::Triage).await;
        let issue = world.open_in(&world.carol, &repo, "x", "").await;
        if let Some(level) = chosen {
            watch::set(forge, &world.alice, &repo, level).await.expect("chosen");
        }
        let level = async || watch::choice(forge, &world.alice, &repo).await.expect("readable").map(|c| c.level);
        let watchers = async || {
            let mut conn = world.rig.store.read().await.expect("readable");
            repos::by_id(&mut conn, repo.id, None).await.expect("readable").expect("there").watcher_count
        };
        let before = watchers().await;
        assert_eq!(level().await, chosen);

        let issue = part.take(&world, &repo, issue).await;

        assert_eq!(level().await, chosen.or(Some(Participating)), "{name}");
        assert_eq!(watchers().await - before, i64::from(chosen.is_none()), "{name}");
        let alice = world.alice.user_id().expect("an account");
        assert!(world.heard_by(&issue).await.contains(&(alice, part.why().to_owned())), "{name}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_read_it_are_asked_to_review_and_only_by_those_who_sort_issues(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let name = |text: &str| text.parse().expect("a name");
    let issue = world.open(&world.carol, "x", "").await;
    refused(review::request(forge, &world.carol, &world.repo, issue.number, &name("alice")).await);
    let secret = make(forge, &world.alice, "secret", Visibility::Private).await;
    let plan = world.open_in(&world.alice, &secret, "plan", "").await;
    for reviewer in ["carol", "nobody"] {
        let unknown = review::request(forge, &world.alice, &secret, plan.number, &name(reviewer)).await;
        assert!(matches!(unknown, Err(IssueError::NotFound("reviewer"))), "{reviewer}: {unknown:?}");
    }
    assert_eq!(world.heard_by(&plan).await.len(), 1, "alice wrote it");
    assert!(!world.events().await.iter().any(|event| event.kind == "review_requested"));
}
