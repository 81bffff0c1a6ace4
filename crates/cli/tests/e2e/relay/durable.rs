//! An OK is a promise: the event is there after a power cut.

use super::Setup;
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;

#[rstest]
fn crash_right_after_an_ok_loses_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    for round in 0..4 {
        let mut client = setup.connect();
        let issues: Vec<_> = (0..50).map(|number| setup.issue(2, &format!("{round} {number}"))).collect();
        issues.iter().for_each(|issue| client.say(&json!(["EVENT", issue])));
        // Not all of them are answered yet, which is the point.
        let answered: Vec<_> = issues[..20 + round * 7].iter().map(|issue| (client.ok(issue).0, issue.id)).collect();
        setup.server.kill();
        setup.server.restart();
        let ids: Vec<_> = answered
            .iter()
            .map(|(accepted, id)| {
                assert!(accepted);
                id
            })
            .collect();
        let found = setup.connect().req(&[json!({"ids": ids})]);
        assert_eq!(found.len(), ids.len(), "round {round}");
    }
}
