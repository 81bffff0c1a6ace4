//! A pull request that names several repositories is released in all of them or in none.

use super::setup::{Setup, WAITS, noise, now, npub, state};
use crate::relay::store;
use crate::support::{builder, query};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, eventually};
use rstest::rstest;
use std::time::Duration;

/// Three repositories that share no commit. The first has a commit of about 325 kB, which the others lack.
struct Three {
    setup: Setup,
    owners: [Key; 3],
    commit: String,
    event: Event,
}

const SOON: Duration = Duration::from_secs(30);
const NAMES: [&str; 3] = ["one", "two", "three"];

impl Three {
    fn new(engine: Engine, settings: &[(&str, &str)]) -> Self {
        let builder = settings.iter().fold(builder(engine), |builder, (name, value)| builder.env(name, value));
        let mut setup = Setup::on(builder.start());
        let owners = [1, 2, 3].map(Key::new);
        setup.first = setup.git.commit_file(&setup.work, "noise", noise(1, 400_000), "a large file");
        setup.served(&owners[0], NAMES[0], &[]);
        for number in [1, 2] {
            setup.announce(&owners[number], NAMES[number], &[]);
            let work = setup.git.init_work_tree();
            let root = setup.git.commit_file(&work, "other", NAMES[number], "another beginning");
            let refs: &[(&str, &str)] = &[("refs/heads/main", &root)];
            setup.state_waits(&state(&owners[number], now() - 5, NAMES[number], refs, Some("main")));
            setup.git.ok(&work, &["push", "-q", &setup.url(&owners[number], NAMES[number]), "main"]);
        }
        let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
        let named: Vec<String> = owners.iter().zip(NAMES).map(|(owner, name)| owner.coordinate(name)).collect();
        let tags: [&[&str]; 4] = [&["a", &named[0]], &["a", &named[1]], &["a", &named[2]], &["c", &commit]];
        let event = Key::new(9).event(now(), 1618, &tags, "please");
        Self { setup, owners, commit, event }
    }

    fn pushed(&self) -> String {
        format!("{}:refs/nostr/{}", self.commit, self.event.id)
    }

    /// Publishes event and commit, in one order or the other; what the one that fails says.
    fn is_refused(&mut self, event_first: bool) -> String {
        let (owner, to) = (self.owners[0].clone(), self.pushed());
        if event_first {
            assert_eq!(self.setup.relay.publish(&self.event), (true, WAITS.to_owned()));
            return self.setup.push_fails(&owner, NAMES[0], &[&to]);
        }
        self.setup.push(&owner, NAMES[0], &[&to]);
        let (taken, reason) = self.setup.relay.publish(&self.event);
        assert!(!taken, "{reason}");
        reason
    }

    /// How many of the repositories have the commit under the event's ref.
    fn reached(&self) -> usize {
        let has = |number: &usize| {
            let refs = self.setup.refs(&self.owners[*number], NAMES[*number]);
            refs.contains(&(format!("refs/nostr/{}", self.event.id), self.commit.clone()))
        };
        (0..3).filter(has).count()
    }

    fn assert_nowhere(&mut self) {
        assert_eq!(self.reached(), 0);
        assert!(!self.setup.is_served(&self.event));
        assert_eq!(query(&self.setup.server, "SELECT count(*) FROM quota_reservations"), "0");
    }

    /// Publishes the event and pushes the commit, whatever of it is here already.
    fn assert_everywhere(&mut self) {
        self.setup.relay.publish(&self.event);
        let (owner, to) = (self.owners[0].clone(), self.pushed());
        self.setup.push(&owner, NAMES[0], &[&to]);
        assert_eq!(self.reached(), 3);
        assert!(self.setup.is_served(&self.event));
        eventually(SOON, || query(&self.setup.server, "SELECT count(*) FROM quota_reservations") == "0");
        self.setup.assert_healthy();
    }
}

/// The quota of whoever proposes fits the copies for two repositories, and not the one for the third.
#[rstest]
fn a_quota_that_is_full_at_the_last_repository_keeps_it_out_of_all(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let mut three = Three::new(engine, &[("ABIDE_QUOTA__KEY_REPO_BYTES", "600kB")]);
    let reported = three.is_refused(event_first);
    assert!(reported.contains("quota"), "{reported}");
    three.assert_nowhere();
    three.setup.server.restart_with(&[("ABIDE_QUOTA__KEY_REPO_BYTES", "4MB")]);
    three.setup.relay = Nostr::connect(&three.setup.server.url());
    three.assert_everywhere();
}

/// It takes no changes, keeps nothing from the others, and gets the pull request once it takes changes again.
#[rstest]
fn a_closed_repository_among_them_is_left_out_until_it_is_open(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] archived: bool,
) {
    let mut three = Three::new(engine, &[]);
    let last = npub(&three.owners[2]);
    // The command finds accounts by name.
    query(&three.setup.server, &format!("UPDATE users SET name = 'third' WHERE npub = '{last}'"));
    let (closes, opens) = match archived {
        true => (["repo", "archive", "third/three"], ["repo", "unarchive", "third/three"]),
        false => (["user", "suspend", "third"], ["user", "unsuspend", "third"]),
    };
    assert_eq!(three.setup.relay.publish(&three.event), (true, WAITS.to_owned()));
    three.setup.server.cli_ok(&closes);
    let (owner, to) = (three.owners[0].clone(), three.pushed());
    three.setup.push(&owner, NAMES[0], &[&to]);
    assert_eq!(three.reached(), 2);
    assert!(three.setup.is_served(&three.event));
    three.setup.server.cli_ok(&opens);
    eventually(SOON, || three.reached() == 3);
    three.setup.assert_healthy();
}

/// More pull requests than one page of the job.
#[rstest]
fn a_repository_that_is_served_later_gets_all_earlier_pull_requests(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (owner, late) = (setup.owner.clone(), Key::new(2));
    setup.served(&owner, "demo", &[]);
    let (one, two) = (owner.coordinate("demo"), late.coordinate("late"));
    let proposal = |number: u64| {
        // Every second is of the same time.
        Key::new(9).event(
            now() - number / 2,
            1618,
            &[&["a", &one], &["a", &two], &["c", &setup.first]],
            &number.to_string(),
        )
    };
    let events: Vec<Event> = (0..60).map(proposal).collect();
    store(&setup.server, &events);
    setup.served(&late, "late", &[]);
    let reached = || {
        let refs = setup.refs(&late, "late");
        refs.iter().filter(|(name, _)| name.starts_with("refs/nostr/")).count()
    };
    eventually(Duration::from_secs(120), || reached() == events.len());
    setup.assert_healthy();
}

/// Each copy alone is within the bound of what one event makes the server copy; both together are not.
#[rstest]
fn what_one_event_makes_the_server_copy_is_bounded_in_sum(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut three = Three::new(engine, &[("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "500kB")]);
    let reported = three.is_refused(true);
    assert!(reported.contains("lacks more objects than this push had"), "{reported}");
    three.assert_nowhere();
}
