//! Two servers on one database: what is published at one is heard at the other.

use super::Setup;
use crate::nodes::Second;
use abide_testkit::{Engine, Nostr};
use serde_json::json;

#[test]
fn what_is_published_at_one_node_is_heard_at_the_other_once() {
    let setup = Setup::new(Engine::Postgres);
    let second = Second::start(&setup.server);
    let mut here = setup.connect();
    let mut there = Nostr::connect(&second.url);
    assert!(there.subscribe("live", &[json!({"kinds": [1621]})]).is_empty());
    assert!(here.subscribe("live", &[json!({"kinds": [1621]})]).is_empty());
    let issues: Vec<_> = (0..20).map(|number| setup.issue(2, &number.to_string())).collect();
    issues.iter().for_each(|issue| assert!(here.publish(issue).0));
    let mut heard: Vec<_> = issues.iter().map(|_| there.live("live").id).collect();
    heard.sort_unstable();
    let mut sent: Vec<_> = issues.iter().map(|issue| issue.id).collect();
    sent.sort_unstable();
    assert_eq!(heard, sent);
    // One more at each: what comes next is that one, so nothing came twice.
    let (last_here, last_there) = (setup.issue(3, "here"), setup.issue(3, "there"));
    assert!(here.publish(&last_here).0);
    assert_eq!(there.live("live"), last_here);
    assert!(there.publish(&last_there).0);
    assert_eq!(there.live("live"), last_there);
    let own: Vec<_> = (0..22).map(|_| here.live("live").id).collect();
    assert_eq!(own.last(), Some(&last_there.id));
    assert_eq!(own.iter().collect::<std::collections::HashSet<_>>().len(), 22);
}
