//! Splitting `<ref>/<path>`.

use abide_core::Oid;
use abide_git::read::{RefOrOid, split_ref};
use abide_git::{Head, Ref, Snapshot};
use proptest::prelude::*;

fn snapshot(names: &[&str]) -> Snapshot {
    let mut names: Vec<_> = names.to_vec();
    names.sort_unstable();
    names.dedup();
    let numbered = names.iter().enumerate();
    let refs = numbered.map(|(index, &name)| Ref { name: name.into(), oid: oid(index), peeled: None, symref: None });
    Snapshot { refs: refs.collect(), head: Head::Symbolic("refs/heads/main".into()) }
}

fn oid(number: usize) -> Oid {
    Oid::from_bytes([u8::try_from(number).unwrap() + 1; 20])
}

fn name(found: &RefOrOid) -> String {
    match found {
        RefOrOid::Branch(name, _) => format!("branch {name}"),
        RefOrOid::Tag(name, _) => format!("tag {name}"),
        RefOrOid::Oid(oid) => format!("oid {oid}"),
        RefOrOid::Prefix(hex) => format!("prefix {hex}"),
    }
}

#[test]
fn the_longest_branch_wins_then_a_tag_then_an_id() {
    let refs =
        snapshot(&["refs/heads/main", "refs/heads/feature/x", "refs/tags/v1", "refs/tags/main", "refs/tags/main/x"]);
    let split = |rest: &str| split_ref(&refs, rest).map(|(found, path)| (name(&found), path.to_owned()));
    let is = |rest: &str, wanted: &str, path: &str| assert_eq!(split(rest), Some((wanted.to_owned(), path.to_owned())));
    is("main", "branch main", "");
    is("main/", "branch main", "");
    is("main/src/lib.rs", "branch main", "src/lib.rs");
    is("main/x", "branch main", "x");
    is("feature/x", "branch feature/x", "");
    is("feature/x/src//a", "branch feature/x", "src//a");
    is("v1/a", "tag v1", "a");
    is("0123456789abcdef0123456789abcdef01234567/a", "oid 0123456789abcdef0123456789abcdef01234567", "a");
    is("0123456789ABCDEF0123456789ABCDEF01234567", "oid 0123456789abcdef0123456789abcdef01234567", "");
    is("0123/a/b", "prefix 0123", "a/b");
    is("refs/heads/main", "branch main", "");
    is("refs/heads/feature/x/src/a", "branch feature/x", "src/a");
    is("refs/tags/main/x", "tag main/x", "");
    is("refs/tags/main/y", "tag main", "y");
    for absent in [
        "",
        "/",
        "feature",
        "feature/y/a",
        "012",
        "nothing/a",
        "refs/heads",
        "refs/heads/none",
        "refs/main",
        &"a".repeat(41),
    ] {
        assert_eq!(split(absent), None, "{absent:?}");
    }
}

#[test]
fn a_tag_leads_to_what_it_was_put_on() {
    let mut refs = snapshot(&["refs/tags/v1"]);
    refs.refs[0].peeled = Some(oid(9));
    assert_eq!(split_ref(&refs, "v1/x"), Some((RefOrOid::Tag("v1".into(), oid(9)), "x")));
}

proptest! {
    /// An address made of an existing branch and a path splits into the same parts, unless a longer branch name matches
    /// into
    /// the path.
    #[test]
    fn addresses_that_we_make_come_apart_again(
        branches in prop::collection::vec("[ab/]{1,6}", 1..6),
        chosen: prop::sample::Index,
        path in "([ab](/[ab]){0,3})?",
    ) {
        let valid = |name: &&String| !name.starts_with('/') && !name.ends_with('/') && !name.contains("//");
        let branches: Vec<_> = branches.iter().filter(valid).map(|name| format!("refs/heads/{name}")).collect();
        prop_assume!(!branches.is_empty());
        let refs = snapshot(&branches.iter().map(String::as_str).collect::<Vec<_>>());
        let branch = branches[chosen.index(branches.len())].strip_prefix("refs/heads/").unwrap();
        let address = if path.is_empty() { branch.to_owned() } else { format!("{branch}/{path}") };
        let (found, rest) = split_ref(&refs, &address).unwrap();
        let RefOrOid::Branch(found, oid) = found else { panic!("a branch exists") };
        prop_assert!(found.len() >= branch.len());
        prop_assert_eq!(refs.get(format!("refs/heads/{found}").as_bytes()).unwrap().oid, oid);
        let joined = if rest.is_empty() { found.clone() } else { format!("{found}/{rest}") };
        prop_assert_eq!(joined, address.clone());
        if found.len() > branch.len() {
            let longer = format!("refs/heads/{found}");
            prop_assert!(branches.contains(&longer) && address.starts_with(&found));
        }
    }

    #[test]
    fn arbitrary_addresses_never_panic(rest in any::<String>(), names in prop::collection::vec("[a-c/]{0,5}", 0..4)) {
        let names: Vec<_> = names.iter().map(|name| format!("refs/heads/{name}")).collect();
        let refs = snapshot(&names.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some((_, path)) = split_ref(&refs, &rest) {
            prop_assert!(rest.contains(path) && !path.starts_with('/'));
        }
    }
}
