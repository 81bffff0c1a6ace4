//! Closing keywords in commits.

use super::{World, share, world, world_with};
use abide_core::repo::Role;
use abide_forge::By;
use abide_forge::issues::{State, show};
use abide_forge::jobs::{Kind, manage};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;

const NOTHING: &str = "0000000000000000000000000000000000000000";

impl World {
    /// A commit with that message on a branch, behind the forge's back. Returns where the branch was and is.
    fn commit(&self, branch: &str, message: &str) -> (String, String) {
        let id = self.repo.id;
        let name = format!("refs/heads/{branch}");
        let parent = self.rig.git(id, &["for-each-ref", "--format=%(objectname)", &name]);
        let parent = if parent.is_empty() { self.rig.git(id, &["rev-parse", "refs/heads/main"]) } else { parent };
        let tree = self.rig.git(id, &["rev-parse", &format!("{parent}^{{tree}}")]);
        let commit = self.rig.git(id, &["commit-tree", &tree, "-p", &parent, "-m", message]);
        self.rig.git(id, &["update-ref", &name, &commit]);
        (parent, commit)
    }

    /// Runs the job that a push of someone's queues.
    async fn pushed(&self, pusher: &abide_forge::Caller, (old, new): &(String, String)) {
        let pusher = pusher.user_id().expect("an account").get();
        let payload = json!({ "repo_id": self.repo.id.get(), "pusher": pusher, "old": old, "new": new });
        let job = manage::run_now(self.forge(), &By::Operator, Kind::IssueKeywords, payload).await.expect("it ran");
        assert_eq!(job.state, "done", "{:?}", job.last_error);
    }

    async fn state(&self, number: i64) -> State {
        show::show(self.forge(), &self.repo, &number.to_string()).await.expect("there").state
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_says_so_closes_an_issue_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    for title in ["one", "two", "three"] {
        world.open(&world.carol, title, "").await;
    }
    let (before, _) = world.commit("main", "prepare #2");
    let (_, after) = world.commit("main", "Start up\n\nFixes #1, see #2.\n\ncloses #99");
    let moved = (before, after);
    world.pushed(&world.alice, &moved).await;
    let first = show::show(world.forge(), &world.repo, "1").await.expect("there");
    assert_eq!((first.state, first.closed_by), (State::Closed, world.alice.user_id()));
    assert_eq!((world.state(2).await, world.state(3).await), (State::Open, State::Open));
    assert_eq!(world.timeline(&world.carol, &first).await, ["referenced", "closed"]);
    let second = show::show(world.forge(), &world.repo, "2").await.expect("there");
    assert_eq!(world.timeline(&world.carol, &second).await, ["referenced", "referenced"], "two commits name it");

    // The same again changes nothing, even after someone opened it again.
    abide_forge::issues::change::reopen(world.forge(), &world.carol, &world.repo, 1).await.expect("open again");
    world.pushed(&world.alice, &moved).await;
    assert_eq!(world.state(1).await, State::Open);
    assert_eq!(world.timeline(&world.carol, &first).await, ["referenced", "closed", "reopened"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_may_what_its_pusher_may(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let other = super::make(world.forge(), &world.carol, "other", abide_core::repo::Visibility::Public).await;
    world.open(&world.alice, "here", "").await;
    let there = world.open_in(&world.carol, &other, "there", "").await;
    let moved = world.commit("main", "fixes #1, fixes carol/other#1");
    // Carol pushes to her own repository only; the words of hers are told, but do not close here.
    world.pushed(&world.carol, &moved).await;
    assert_eq!(world.state(1).await, State::Open);
    let there = show::show(world.forge(), &other, &there.number.to_string()).await.expect("there");
    assert_eq!(there.state, State::Closed, "in hers they do");
    share(world.forge(), &world.alice, &world.repo, "carol", Role::Triage).await;
    let moved = world.commit("main", "fixes #1");
    world.pushed(&world.carol, &moved).await;
    assert_eq!(world.state(1).await, State::Closed);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_commits_are_read_and_a_first_push_is_one_of_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world_with(engine, |settings| settings.issues.keyword_commits = 2).await;
    for title in ["one", "two", "three"] {
        world.open(&world.alice, title, "").await;
    }
    world.commit("main", "fixes #1");
    world.commit("main", "fixes #2");
    let (_, last) = world.commit("main", "fixes #3");
    world.pushed(&world.alice, &(NOTHING.into(), last)).await;
    assert_eq!(world.state(1).await, State::Open, "the latest two are read");
    assert_eq!((world.state(2).await, world.state(3).await), (State::Closed, State::Closed));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_the_default_branch_queues_the_job(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let queued = manage::list(world.forge(), &By::Operator, None, 100).await.expect("readable");
    let of_kind: Vec<_> = queued.iter().filter(|job| job.kind == "issues:keywords").collect();
    assert_eq!(of_kind.len(), 1, "the first commit of the repository was one");
    let payload: serde_json::Value = serde_json::from_str(&of_kind[0].payload).expect("JSON");
    assert_eq!((payload["old"].as_str(), payload["repo_id"].as_i64()), (Some(NOTHING), Some(world.repo.id.get())));
}
