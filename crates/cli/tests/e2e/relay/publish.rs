//! Accepted events, and the reasons of refusals.

use super::{Setup, store};
use crate::support::query;
use abide_testkit::{Engine, Key};
use rstest::rstest;
use serde_json::{Value, json};

fn refused((accepted, text): (bool, String)) -> String {
    assert!(!accepted, "accepted: {text}");
    text
}

#[rstest]
fn what_belongs_to_a_repository_is_taken_and_what_does_not_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let bob = Key::new(2);
    let issue = setup.issue(2, "it is broken");
    assert_eq!(client.publish(&issue), (true, String::new()));
    assert_eq!(client.publish(&issue), (true, "duplicate: already have this event".into()));
    let comment = bob.event(setup.now, 1111, &[&["E", &issue.id.to_hex()]], "really");
    assert_eq!(client.publish(&comment), (true, String::new()), "by the id of an issue");
    let quote = bob.event(setup.now, 1, &[&["q", &setup.repo]], "look");
    assert_eq!(client.publish(&quote), (true, String::new()), "any kind");
    let (elsewhere, nothing) = (bob.coordinate("other"), "ab".repeat(32));
    for tags in [&[][..], &[&["a", &elsewhere][..]], &[&["e", &nothing]]] {
        let unrelated = bob.event(setup.now, 1621, tags, "x");
        assert!(refused(client.publish(&unrelated)).starts_with("restricted: the event references no repository"));
    }
    assert_eq!(client.req(&[json!({"kinds": [1621, 1111, 1]})]).len(), 3);
}

#[rstest]
fn what_a_root_tags_is_taken(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let note = Key::new(3).event(setup.now, 1, &[], "an idea");
    refused(client.publish(&note));
    let issue = Key::new(2).event(setup.now, 1621, &[&["a", &setup.repo], &["q", &note.id.to_hex()]], "see there");
    assert!(client.publish(&issue).0);
    assert_eq!(client.publish(&note), (true, String::new()));
}

#[rstest]
fn what_is_linked_through_other_events_is_taken_within_bounds(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let bob = Key::new(2);
    let later = bob.event(setup.now, 1, &[], "quoted before it came");
    let note = bob.event(setup.now, 1, &[&["q", &setup.repo], &["e", &later.id.to_hex()]], "about the repository");
    assert!(client.publish(&note).0);
    assert_eq!(client.publish(&later), (true, String::new()), "by what an accepted note tags");
    // Each answers the one before; the first tags the repository.
    let mut last = note;
    for step in 2..=10 {
        last = bob.event(setup.now, 1, &[&["e", &last.id.to_hex()]], &format!("{step} steps away"));
        assert_eq!(client.publish(&last), (true, String::new()), "{step}");
    }
    for kind in [1, 1621] {
        let far = bob.event(setup.now, kind, &[&["e", &last.id.to_hex()]], "too far away");
        assert!(refused(client.publish(&far)).starts_with("restricted: the event is more than 10 references away"));
    }
    let profile = bob.event(setup.now, 0, &[&["e", &"ab".repeat(32)]], "{}");
    assert!(client.publish(&profile).0);
    let named = Key::new(3).event(setup.now, 1, &[&["e", &profile.id.to_hex()]], "about a person");
    refused(client.publish(&named));
    let reply = Key::new(4).event(setup.now, 1, &[&["e", &later.id.to_hex()]], "from someone else");
    assert_eq!(client.publish(&reply), (true, String::new()));
}

#[rstest]
fn profiles_are_taken_from_those_who_are_known(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let profile = |key: u32, kind| Key::new(key).event(setup.now, kind, &[], "{}");
    for kind in [0, 10_002, 10_317] {
        assert!(refused(client.publish(&profile(2, kind))).starts_with("restricted: the author has no repository"));
        assert_eq!(client.publish(&profile(1, kind)), (true, String::new()));
    }
    assert!(client.publish(&setup.issue(2, "x")).0);
    assert!(client.publish(&profile(2, 0)).0, "a contribution makes an author known");
}

#[test]
fn events_that_are_not_what_they_claim_are_refused() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    let mut sent = |change: &dyn Fn(&mut Value)| {
        let mut event = serde_json::to_value(setup.issue(2, "text")).unwrap();
        change(&mut event);
        client.say(&json!(["EVENT", event]));
        let answer = client.wait(|heard| heard.name() == "OK");
        assert_eq!(answer.0[2], false);
        answer.0[3].as_str().unwrap().to_owned()
    };
    assert_eq!(sent(&|event| event["content"] = json!("other")), "invalid: the id is not the hash of the event");
    let signature = sent(&|event| event["sig"] = json!("0".repeat(128)));
    assert_eq!(signature, "invalid: the signature is not valid");
    let large = Key::new(2).event(setup.now, 1621, &[&["a", &setup.repo]], &"x".repeat(256 << 10));
    assert_eq!(refused(client.publish(&large)), "invalid: the event is larger than 262144 bytes, the limit");
    let future = Key::new(2).event(setup.now + 3600, 1621, &[&["a", &setup.repo]], "x");
    assert!(refused(client.publish(&future)).starts_with("invalid: created_at is more than 15 minutes in the future"));
    let gone = (setup.now - 1).to_string();
    let expired = Key::new(2).event(setup.now, 1621, &[&["a", &setup.repo], &["expiration", &gone]], "x");
    assert_eq!(refused(client.publish(&expired)), "invalid: the event has expired");
    assert_eq!(client.req(&[json!({"kinds": [1621]})]).len(), 0);
}

#[rstest]
fn of_versions_in_one_second_the_lowest_id_stays(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    for (kind, slot) in [(10_002, None), (30_023, Some("article"))] {
        let version = |at, text: &str| {
            let named = ["d", slot.unwrap_or_default()];
            setup.owner.event(at, kind, &[&["a", &setup.repo], &named], text)
        };
        let mut versions: Vec<_> = ["a", "b", "c"].iter().map(|text| version(setup.now, text)).collect();
        versions.sort_by_key(|event| event.id);
        assert!(client.publish(&versions[1]).0);
        assert_eq!(refused(client.publish(&versions[2])), "invalid: a newer version of this event is stored");
        assert_eq!(
            refused(client.publish(&version(setup.now - 1, "older"))),
            "invalid: a newer version of this event is stored"
        );
        assert!(client.publish(&versions[0]).0);
        assert_eq!(client.req(&[json!({"kinds": [kind]})]), [versions[0].clone()]);
        let newer = version(setup.now + 1, "newer");
        assert!(client.publish(&newer).0);
        assert_eq!(client.req(&[json!({"kinds": [kind]})]), [newer]);
    }
}

#[rstest]
fn ephemeral_events_are_passed_on_and_not_kept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let (mut client, mut listener) = (setup.connect(), setup.connect());
    assert!(listener.subscribe("live", &[json!({"kinds": [20_001]})]).is_empty());
    let typing = Key::new(2).event(setup.now, 20_001, &[&["a", &setup.repo]], "typing");
    assert_eq!(client.publish(&typing), (true, String::new()));
    assert_eq!(listener.live("live"), typing);
    assert!(client.req(&[json!({"kinds": [20_001]})]).is_empty());
    let elsewhere = Key::new(2).event(setup.now, 20_001, &[], "typing");
    refused(client.publish(&elsewhere));
}

#[rstest]
fn what_asked_to_be_forgotten_is_not_served_and_goes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let fleeting = |until: u64| {
        let until = until.to_string();
        Key::new(2).event(setup.now, 1621, &[&["a", &setup.repo], &["expiration", &until]], "x")
    };
    store(&setup.server, &[fleeting(setup.now - 5)]);
    let later = fleeting(setup.now + 3600);
    assert!(client.publish(&later).0);
    assert_eq!(client.req(&[json!({"kinds": [1621]})]), [later]);
    assert_eq!(client.count(&[json!({"kinds": [1621]})]), 1);
    assert!(setup.server.cli(&["jobs", "run", "relay:expire"]).status.success());
    assert_eq!(query(&setup.server, "SELECT count(*) FROM nostr_events WHERE kind = 1621").trim(), "1");
}

#[rstest]
fn what_its_author_deleted_does_not_come_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let (gone, other) = (setup.issue(2, "gone"), setup.issue(3, "other"));
    for issue in [&gone, &other] {
        let bytes = |text: String| match setup.server.database().url() {
            Some(_) => format!("decode('{text}', 'hex')"),
            None => format!("x'{text}'"),
        };
        let author = bytes(Key::new(2).public().to_hex());
        let sql = format!(
            "INSERT INTO nostr_deleted (pubkey, target, at, event_id) VALUES ({author}, 'e:{}', 1, {author})",
            issue.id
        );
        query(&setup.server, &sql);
    }
    assert_eq!(refused(client.publish(&gone)), "blocked: this event was deleted by its author");
    assert!(client.publish(&other).0, "nobody deletes what is not theirs");
}

#[test]
fn the_limits_of_states_are_their_own() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    let tags: Vec<[String; 2]> =
        (0..5_000).map(|n| [format!("refs/heads/branch-{n:05}-with-a-name"), "a".repeat(40)]).collect();
    let mut tags: Vec<Vec<&str>> = tags.iter().map(|tag| tag.iter().map(String::as_str).collect()).collect();
    tags.insert(0, vec!["d", "project"]);
    let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
    let state = setup.owner.event(setup.now, 30_618, &tags, "");
    assert!(serde_json::to_string(&state).unwrap().len() > 256 << 10);
    let (_, text) = client.publish(&state);
    assert!(!text.contains("bytes"), "{text}");
}

#[rstest]
fn without_repositories_from_nostr_only_what_needs_git_data_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::with(engine, &[("ABIDE_GRASP__ENABLED", "false")]);
    let (mut client, author, commit) = (setup.connect(), Key::new(2), "c".repeat(40));
    let said = |kind: u16, tags: &[&[&str]]| {
        let a = ["a", setup.repo.as_str()];
        let tags: Vec<&[&str]> = std::iter::once(&a[..]).chain(tags.iter().copied()).collect();
        author.event(setup.now, kind, &tags, "x")
    };
    let off = (false, "restricted: this server does not accept repositories over nostr".to_owned());
    let state: &[&[&str]] = &[&["d", "project"], &["refs/heads/main", &commit]];
    for refused in [
        author.announcement(setup.now, "other", &setup.server.url()),
        setup.owner.event(setup.now, 30_618, state, ""),
        said(1618, &[&["c", &commit]]),
        said(1617, &[&["c", &commit]]),
    ] {
        assert_eq!(client.publish(&refused), off, "kind {}", refused.kind.as_u16());
    }
    let (patch, comment) = (said(1617, &[]), said(1111, &[]));
    for taken in [&patch, &comment, &said(1621, &[])] {
        assert_eq!(client.publish(taken), (true, String::new()), "kind {}", taken.kind.as_u16());
    }
    let gone: &[&[&str]] = &[&["e", &patch.id.to_hex()], &["e", &comment.id.to_hex()]];
    assert_eq!(client.publish(&author.event(setup.now, 5, gone, "")), (true, String::new()));
    assert_eq!(client.req(&[json!({"ids": [patch.id, comment.id]})]), [], "whoever wants their words gone is heard");
}

#[rstest]
fn what_one_event_names_is_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let (mut client, author) = (setup.connect(), Key::new(2));
    let issue = setup.issue(2, "x");
    assert!(client.publish(&issue).0);
    let ids: Vec<String> = (0..500).map(|n| format!("{n:064x}")).collect();
    let mut tags: Vec<[&str; 2]> = ids.iter().map(|id| ["e", id.as_str()]).collect();
    let own = issue.id.to_hex();
    tags.push(["e", &own]);
    let request = |tags: &[[&str; 2]]| {
        let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
        author.event(setup.now, 5, &tags, "")
    };
    let refused = (false, "invalid: a deletion may reference at most 500 events; send several deletions".to_owned());
    assert_eq!(client.publish(&request(&tags)), refused);
    assert_eq!(client.req(&[json!({"ids": [issue.id]})]).len(), 1, "nothing went");
    assert_eq!(client.publish(&request(&tags[1..])), (true, String::new()));
    assert_eq!(client.req(&[json!({"ids": [issue.id]})]), []);

    let names: Vec<String> = (3..23).map(|n| Key::new(n).coordinate("project")).collect();
    let patch = |names: &[&str]| {
        let tags: Vec<[&str; 2]> = names.iter().map(|name| ["a", *name]).collect();
        let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
        author.event(setup.now, 1617, &tags, "x")
    };
    let mut named: Vec<&str> = names.iter().map(String::as_str).collect();
    named.push(&setup.repo);
    let refused = (false, "invalid: a patch or pull request may reference at most 20 repositories".to_owned());
    assert_eq!(client.publish(&patch(&named)), refused);
    assert_eq!(client.publish(&patch(&named[1..])), (true, String::new()));
}
