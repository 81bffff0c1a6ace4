//! Pages of a list and the links between them.

use super::{Api, assert_refused};
use crate::support::{person, server};
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};
use rstest::rstest;
use std::collections::BTreeMap;

const COUNT: usize = 7;

/// The links of an answer: relation → address.
fn links(response: &Response) -> BTreeMap<String, String> {
    let header = response.header("link").unwrap_or_default();
    let links = header.split(", ").filter(|link| !link.is_empty()).map(|link| {
        let (address, relation) = link.split_once("; ").unwrap_or_else(|| panic!("not a link: {link}"));
        let address = address.strip_prefix('<').and_then(|address| address.strip_suffix('>'));
        let relation = relation.strip_prefix("rel=\"").and_then(|relation| relation.strip_suffix('"'));
        (relation.expect("a relation").to_owned(), address.expect("an address").to_owned())
    });
    links.collect()
}

/// Where each relation leads, as a page number.
fn pages(response: &Response) -> BTreeMap<String, u32> {
    let number = |address: &str| address.rsplit_once("page=").and_then(|(_, page)| page.parse().ok());
    links(response).into_iter().map(|(relation, address)| (relation, number(&address).expect("a page"))).collect()
}

fn expected(pairs: &[(&str, u32)]) -> BTreeMap<String, u32> {
    pairs.iter().map(|&(relation, page)| (relation.to_owned(), page)).collect()
}

fn names(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 200, "{}", response.text());
    let list = response.json();
    let list = list.as_array().expect("a list");
    list.iter().map(|repo| repo["name"].as_str().expect("a name").to_owned()).collect()
}

#[rstest]
fn links_lead_through_all_pages_and_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    for number in 0..COUNT {
        alice.create(&server, &format!("repo-{number}"), number % 2 == 0);
    }
    let api = Api::of(&server, &alice);

    let page = |number: u32| api.get(&format!("/user/repos?per_page=3&page={number}"));
    assert_eq!(pages(&page(1)), expected(&[("next", 2), ("last", 3)]));
    assert_eq!(pages(&page(2)), expected(&[("first", 1), ("prev", 1), ("next", 3), ("last", 3)]));
    assert_eq!(pages(&page(3)), expected(&[("first", 1), ("prev", 2)]));
    assert_eq!(names(&page(3)).len(), 1);
    assert_eq!(pages(&page(9)), expected(&[("first", 1), ("prev", 3)]), "beyond the end the way back is shown");
    assert!(names(&page(9)).is_empty());

    // As a client goes: from link to link.
    let mut seen = Vec::new();
    let mut next = Some(format!("{}/api/v3/user/repos?sort=full_name&per_page=2", server.url()));
    while let Some(address) = next {
        assert!(seen.is_empty() || address.contains("sort=full_name&"), "other parameters stay: {address}");
        let path = address.strip_prefix(&format!("{}/api/v3", server.url())).expect("links lead to this server");
        let response = api.get(path);
        seen.extend(names(&response));
        next = links(&response).remove("next");
    }
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((seen.len(), distinct.len()), (COUNT, COUNT), "{seen:?}");

    // The count behind the links is of what the reader may see.
    let public = Api::nobody(&server).get("/users/alice/repos?per_page=1");
    assert_eq!(pages(&public), expected(&[("next", 2), ("last", 3)]));
}

fn server_with_three() -> (Server, String) {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    for name in ["a", "b", "c"] {
        alice.create(&server, name, false);
    }
    (server, alice.token)
}

#[test]
fn odd_page_numbers_are_put_right() {
    let (server, token) = server_with_three();
    let api = Api::with(&server, &token);
    for query in
        ["", "?per_page=100", "?per_page=1000", "?per_page=many", "?page=0", "?page=-1", "?page=x", "?page", "?&"]
    {
        let response = api.get(&format!("/user/repos{query}"));
        assert_eq!(names(&response).len(), 3, "{query}");
        assert_eq!(response.header("link"), None, "{query}: one page needs no links");
    }
    assert_eq!(names(&api.get("/user/repos?per_page=0")).len(), 1);
    assert_eq!(names(&api.get("/user/repos?per_page=-5")).len(), 1);
}

#[test]
fn nobody_pages_deeper_than_ten_thousand() {
    let (server, token) = server_with_three();
    let api = Api::with(&server, &token);
    for query in ["?per_page=100&page=101", "?per_page=1&page=10001", "?page=334"] {
        assert!(names(&api.get(&format!("/user/repos{query}"))).is_empty(), "{query}");
    }
    let deep = ["?per_page=100&page=102", "?per_page=1&page=10002", "?page=335", "?page=9223372036854775807"];
    for list in ["/user/repos", "/users/alice/repos", "/user/keys", "/repos/alice/a/collaborators"] {
        for query in deep {
            let rule = assert_refused(&api.get(&format!("{list}{query}")), "page", "invalid");
            assert!(rule.contains("10000"), "{rule}");
        }
    }
}
