//! Pull requests of strangers, many of them: they wait for each other, and leave a bounded number of refs.

use super::setup::{Setup, WAITS, now, state};
use crate::relay::store;
use crate::support::{crowded, query};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use serde_json::json;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections of the attacker, and pull requests on each: more than the queues of all connections held together when they
/// were one for each lane.
const CONNECTIONS: u32 = 8;
const EACH: u32 = 70;

/// Files that tell git when to wait, and tell when it does.
struct Gate {
    closed: PathBuf,
    reached: PathBuf,
}

impl Gate {
    fn close(&self) {
        fs::write(&self.closed, "").expect("writable");
    }

    fn open(&self) {
        fs::remove_file(&self.closed).expect("ours");
    }

    /// Waits until a process waits.
    fn holds(&self) {
        eventually(PATIENCE, || self.reached.exists());
    }
}

/// Walks that wait at the gate.
#[derive(Clone, Copy)]
enum Walks {
    All,
    /// Only those of objects that a repository has: no connectivity checks of pushes.
    InPlace,
}

/// A server whose git does not come back from a walk for as long as a file is there.
fn setup(engine: Engine, dir: &Path, walks: Walks) -> (Setup, Gate) {
    let binary = dir.join("slow-git");
    let gate = Gate { closed: dir.join("closed"), reached: dir.join("reached") };
    let waits = match walks {
        Walks::All => "true",
        Walks::InPlace => "[ -z \"$GIT_OBJECT_DIRECTORY\" ]",
    };
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *rev-list*) while [ -e '{}' ] && {waits}; do : > '{}'; sleep 0.05; done;; esac\nexec git \"$@\"\n",
        gate.closed.display(),
        gate.reached.display()
    );
    fs::write(&binary, script).expect("writable");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("ours");
    let mut setup = Setup::on(crowded(engine).env("ABIDE_GIT__BINARY", &binary).start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    (setup, gate)
}

/// A pull request for a commit that is here.
fn proposal(setup: &Setup, author: u32) -> Event {
    let coordinate = setup.owner.coordinate("demo");
    Key::new(author).event(now(), 1618, &[&["a", &coordinate], &["c", &setup.first]], &author.to_string())
}

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

#[rstest]
fn pull_requests_of_a_stranger_keep_nobody_from_publishing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (setup, gate) = setup(engine, dir.path(), Walks::All);
    gate.close();
    let mut flood = Vec::new();
    for connection in 0..CONNECTIONS {
        let mut relay = Nostr::try_connect_from(ATTACKER, &setup.server.url()).expect("there is a place");
        for number in 0..EACH {
            relay.say(&json!(["EVENT", proposal(&setup, 1_000 + connection * EACH + number)]));
        }
        flood.push(relay);
    }
    gate.holds();
    // None of them can end, and they were all sent before.
    let mut relay = Nostr::connect(&setup.server.url());
    let coordinate = setup.owner.coordinate("demo");
    let issue = Key::new(2).event(now(), 1621, &[&["a", &coordinate]], "an issue");
    assert_eq!(relay.publish(&issue), (true, String::new()));
    let id = issue.id.to_hex();
    let tags: &[&[&str]] = &[&["E", &id], &["K", "1621"], &["e", &id], &["k", "1621"]];
    assert_eq!(relay.publish(&Key::new(3).event(now(), 1111, tags, "a comment")), (true, String::new()));
    let announcement = setup.announcement(&Key::new(4), now(), "other", &[]);
    assert_eq!(relay.publish(&announcement), (true, WAITS.to_owned()), "announcements take turns beside them");
    gate.open();
}

/// The slot of strangers is held by the first; the second does not hold up its connection for long.
#[rstest]
fn a_pull_request_that_finds_git_busy_waits_and_is_served_by_a_job(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (mut setup, gate) = setup(engine, dir.path(), Walks::All);
    let owner = setup.owner.clone();
    let (first, mut second) = (proposal(&setup, 10), proposal(&setup, 11));
    if !event_first {
        let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
        let tags: &[&[&str]] = &[&["a", &owner.coordinate("demo")], &["c", &commit]];
        second = Key::new(11).event(now(), 1618, tags, "its commit comes first");
        setup.push(&owner, "demo", &[&format!("{commit}:{}", nostr_ref(&second))]);
    }
    gate.close();
    let mut holding = Nostr::connect(&setup.server.url());
    holding.say(&json!(["EVENT", first]));
    gate.holds();
    assert_eq!(setup.relay.publish(&second), (true, WAITS.to_owned()), "git is busy");
    assert!(!setup.is_served(&second));
    gate.open();
    assert_eq!(holding.ok(&first), (true, String::new()));
    eventually(PATIENCE, || setup.is_served(&second));
    let refs = setup.refs(&owner, "demo");
    for event in [&first, &second] {
        assert!(refs.iter().any(|(name, _)| *name == nostr_ref(event)), "{refs:?}");
    }
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_proposals"), "0");
    setup.assert_healthy();
}

/// The author of two pull requests has one git slot. The first pull request holds it when the commit of the second comes.
#[rstest]
fn a_push_does_not_wait_for_the_git_slot_of_a_pull_request_that_it_completes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (mut setup, gate) = setup(engine, dir.path(), Walks::InPlace);
    let owner = setup.owner.clone();
    let second = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let tags: &[&[&str]] = &[&["a", &owner.coordinate("demo")], &["c", &second]];
    let waits = Key::new(10).event(now(), 1618, tags, "its commit comes with a branch");
    assert_eq!(setup.relay.publish(&waits), (true, WAITS.to_owned()));
    setup.state_waits(&state(&owner, now(), "demo", &[("refs/heads/main", &second)], Some("main")));
    gate.close();
    let holds = proposal(&setup, 10);
    let mut holding = Nostr::try_connect_from(ATTACKER, &setup.server.url()).expect("there is a place");
    holding.say(&json!(["EVENT", holds]));
    gate.holds();
    let begun = Instant::now();
    setup.push(&owner, "demo", &["main"]);
    assert!(begun.elapsed() < PATIENCE, "the push took {:?}", begun.elapsed());
    assert!(!setup.is_served(&waits));
    gate.open();
    assert_eq!(holding.ok(&holds), (true, String::new()));
    eventually(PATIENCE, || setup.is_served(&waits));
    assert!(setup.refs(&owner, "demo").contains(&(nostr_ref(&waits), second)));
    setup.assert_healthy();
}

/// Stores pull requests of strangers as if each had a ref.
fn with_refs(setup: &Setup, authors: std::ops::Range<u32>, each: u64) -> Vec<Event> {
    let (coordinate, at) = (setup.owner.coordinate("demo"), now());
    let proposal = |author: u32, number: u64| {
        Key::new(author).event(at - number, 1618, &[&["a", &coordinate], &["c", &setup.first]], "")
    };
    let events: Vec<Event> =
        authors.flat_map(|author| (0..each).map(move |number| (author, number))).map(|(a, n)| proposal(a, n)).collect();
    store(&setup.server, &events);
    let refs = "INSERT INTO nostr_proposal_refs (repo_id, event_id, pubkey)
        SELECT r.repo_id, e.event_id, e.pubkey FROM nostr_events e, nostr_repos r WHERE e.kind = 1618
        ON CONFLICT DO NOTHING";
    query(&setup.server, refs);
    events
}

const REFS: &str = "SELECT count(*) FROM nostr_proposal_refs";

#[rstest]
fn strangers_make_so_many_refs_of_pull_requests(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(crowded(engine).start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let stored = with_refs(&setup, 10..11, 100);
    let another = proposal(&setup, 10);
    let full = "quota: this key has 100 of 100 refs of pull requests here; link the key to an account on this site";
    assert_eq!(setup.relay.publish(&another), (false, format!("rate-limited: {full}")));
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let pushed = Key::new(10).event(now(), 1618, &[&["a", &owner.coordinate("demo")], &["c", &commit]], "pushed");
    assert_eq!(setup.relay.publish(&pushed), (true, WAITS.to_owned()));
    let reported = setup.push_fails(&owner, "demo", &[&format!("{commit}:{}", nostr_ref(&pushed))]);
    assert!(reported.contains("100 of 100 refs of pull requests"), "{reported}");
    // A pull request that is deleted leaves room for another.
    let gone = Key::new(10).event(now(), 5, &[&["e", &stored[0].id.to_hex()]], "");
    assert!(setup.relay.publish(&gone).0);
    assert_eq!(query(&setup.server, REFS), "99");
    assert_eq!(setup.relay.publish(&another), (true, String::new()));
    assert_eq!(query(&setup.server, REFS), "100");

    assert_eq!(setup.relay.publish(&proposal(&setup, 11)), (true, String::new()), "another key");
    assert_eq!(query(&setup.server, "SELECT refs FROM nostr_addresses"), "2", "counted for the address");
    with_refs(&setup, 100..119, 100);
    let refused = setup.relay.publish(&proposal(&setup, 12));
    let full = "rate-limited: quota: the repository has 2001 of 2000 refs of pull requests by keys without an account";
    assert!(!refused.0 && refused.1.starts_with(full), "{refused:?}");
    let linked = format!("UPDATE users SET npub = '{}' WHERE name = 'member'", super::setup::npub(&Key::new(12)));
    crate::support::person(&setup.server, "member");
    query(&setup.server, &linked);
    assert_eq!(setup.relay.publish(&proposal(&setup, 12)), (true, String::new()), "an account is not a stranger");
}

/// A push to a branch hears of no refs of strangers; a fetch does, and a pull request can be pushed twice.
#[rstest]
fn refs_of_pull_requests_are_not_advertised_to_pushes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(crowded(engine).start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let event = proposal(&setup, 10);
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    assert!(setup.refs(&owner, "demo").iter().any(|(name, _)| *name == nostr_ref(&event)));
    let path = format!("/{}/demo.git/info/refs?service=git-receive-pack", super::setup::npub(&owner));
    let reported = http::get(setup.server.http_addr(), &path, None).text();
    assert!(reported.contains("refs/heads/main") && !reported.contains("refs/nostr/"), "{reported}");
    setup.push(&owner, "demo", &[&format!("{}:{}", setup.first, nostr_ref(&event))]);
    setup.assert_healthy();
}
