//! Branches, tags, commits and what separates them.

use super::setup::{Setup, setup};
use super::{Api, assert_error, assert_refused};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value, json};

const REPO: &str = "/repos/alice/project";

fn shas(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|one| one["sha"].as_str().unwrap_or_default().to_owned()).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[rstest]
fn branches_with_slashes_are_found_however_they_are_written(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let tip = setup.git(&["rev-parse", "feature/x"]);
    let listed = api.read(&format!("{REPO}/branches"));
    let names: Vec<_> = listed.as_array().into_iter().flatten().map(|branch| branch["name"].clone()).collect();
    assert_eq!(names, ["feature/x", "main"]);
    assert_eq!(listed[0]["commit"]["sha"], tip);
    for written in ["feature/x", "feature%2Fx", "feature%2fx"] {
        let branch = api.read(&format!("{REPO}/branches/{written}"));
        assert_eq!((&branch["name"], &branch["commit"]["sha"]), (&json!("feature/x"), &json!(tip)), "{written}");
        assert_eq!(api.read(&format!("{REPO}/commits/{written}"))["sha"], tip);
        assert_eq!(api.read(&format!("{REPO}/git/ref/heads/{written}"))["object"]["sha"], tip);
        assert_eq!(api.read(&format!("{REPO}/git/trees/{written}"))["truncated"], false);
    }
    assert_error(&api.get(&format!("{REPO}/branches/feature")), 404);
    assert_error(&api.get(&format!("{REPO}/branches/v1.0")), 404);
}

#[rstest]
fn tags_lead_to_their_commits(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let tags = api.read(&format!("{REPO}/tags"));
    assert_eq!((&tags[0]["name"], &tags[1]["name"]), (&json!("v1.0"), &json!("v0.9")));
    assert_eq!(tags[0]["commit"]["sha"], setup.git(&["rev-parse", "v1.0^{commit}"]));

    let found = api.read(&format!("{REPO}/git/ref/tags/v1.0"));
    let object = setup.git(&["rev-parse", "v1.0"]);
    assert_eq!((&found["object"]["type"], &found["object"]["sha"]), (&json!("tag"), &json!(object)));
    let tag = api.read(&format!("{REPO}/git/tags/{object}"));
    assert_eq!(
        (&tag["tag"], &tag["message"], &tag["object"]["type"]),
        (&json!("v1.0"), &json!("The first\n"), &json!("commit"))
    );
    assert_eq!(tag["object"]["sha"], tags[0]["commit"]["sha"]);
    assert!(tag["tagger"]["date"].is_string());
    assert_error(&api.get(&format!("{REPO}/git/tags/{}", setup.git(&["rev-parse", "main"]))), 404);
}

#[rstest]
fn commits_come_in_gits_order_a_page_at_a_time(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let all = lines(&setup.git(&["log", "--format=%H", "main"]));
    assert_eq!(shas(&api.read(&format!("{REPO}/commits"))), all);
    let first = api.get(&format!("{REPO}/commits?per_page=2"));
    assert_eq!(shas(&first.json()), all[..2]);
    let link = first.header("link").expect("a page follows");
    assert!(link.contains("page=2>; rel=\"next\"") && link.contains("rel=\"last\""), "{link}");
    assert_eq!(shas(&api.read(&format!("{REPO}/commits?per_page=2&page=2"))), all[2..]);
    assert_eq!(
        shas(&api.read(&format!("{REPO}/commits?sha=v0.9"))),
        lines(&setup.git(&["log", "--format=%H", "v0.9"]))
    );
    for path in ["src/lib.rs", "src", "/src/"] {
        let expected = lines(&setup.git(&["log", "--format=%H", "main", "--", path.trim_matches('/')]));
        assert_eq!(shas(&api.read(&format!("{REPO}/commits?path={path}"))), expected, "{path}");
    }
    let commit = &api.read(&format!("{REPO}/commits?sha=v1.0"))[0]["commit"];
    assert_eq!(commit["message"], "Add more\n\nAll of it.");
    assert_eq!(commit["tree"]["sha"], setup.git(&["rev-parse", "v1.0^{tree}"]));
}

#[test]
fn commits_are_filtered_by_author_and_time() {
    let setup = setup(Engine::Sqlite);
    let api = Api::nobody(&setup.server);
    let when = setup.git(&["log", "-1", "--format=%cI", "main"]);
    let day_after = "2030-01-01T00:00:00Z";
    let count = |query: &str| shas(&api.read(&format!("{REPO}/commits?{query}"))).len();
    assert!(when.as_str() < day_after, "{when}");
    assert_eq!((count("since=2000-01-01T00:00:00Z"), count(&format!("since={day_after}"))), (3, 0));
    assert_eq!((count(&format!("until={day_after}")), count("until=2000-01-01")), (3, 0));
    let author = setup.git(&["log", "-1", "--format=%ae", "main"]);
    assert_eq!((count(&format!("author={author}")), count("author=nobody@else")), (3, 0));
    assert_refused(&api.get(&format!("{REPO}/commits?since=yesterday")), "since", "invalid");
    assert_error(&api.get(&format!("{REPO}/commits?sha=absent")), 404);
}

#[rstest]
fn a_commit_tells_what_it_changed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, .. } = setup(engine);
    let api = Api::nobody(&server);
    let commit = api.read(&format!("{REPO}/commits/main"));
    assert_eq!(commit["stats"], json!({ "total": 2, "additions": 1, "deletions": 1 }));
    let file = &commit["files"][0];
    assert_eq!((&file["filename"], &file["status"]), (&json!("src/lib.rs"), &json!("modified")));
    assert_eq!(file["patch"], "@@ -1,3 +1,3 @@\n-//! One.\n+//! Two.\n \n pub fn one() {}");
    let renamed = &api.read(&format!("{REPO}/commits/feature/x"))["files"][0];
    assert_eq!(
        (&renamed["status"], &renamed["previous_filename"], &renamed["filename"]),
        (&json!("renamed"), &json!("README.md"), &json!("READ ME.md"))
    );
    assert!(
        renamed["contents_url"].as_str().is_some_and(|url| url.contains("/contents/READ%20ME.md?ref=")),
        "{renamed}"
    );
    assert_eq!(api.read(&format!("{REPO}/commits/v0.9"))["files"][0]["status"], "added");
}

/// Git applies our patch and arrives at the same tree.
#[test]
fn diffs_and_patches_are_what_git_takes() {
    let setup = setup(Engine::Sqlite);
    let get = |path: &str, form: &str| {
        let accept = format!("application/vnd.github.{form}");
        let request = setup.api().request("GET", &format!("{REPO}/{path}")).header("Accept", &accept);
        let answer = request.send(setup.server.http_addr());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    };
    assert_eq!(get("commits/main", "sha"), setup.git(&["rev-parse", "main"]).into_bytes());

    let file = setup.tree.join("../received");
    for (from, to, path, form) in [
        ("v1.0^{commit}", "main", "commits/main", "diff"),
        ("main", "feature/x", "commits/feature%2Fx", "diff"),
        ("v1.0^{commit}", "feature/x", "compare/v1.0...feature/x", "diff"),
    ] {
        std::fs::write(&file, get(path, form)).expect("writable");
        setup.git(&["checkout", "-q", "--detach", from]);
        setup.git(&["apply", "--index", file.to_str().expect("a path of ours")]);
        assert_eq!(setup.git(&["write-tree"]), setup.git(&["rev-parse", &format!("{to}^{{tree}}")]), "{path}");
        setup.git(&["reset", "-q", "--hard"]);
    }
    std::fs::write(&file, get("compare/v1.0...feature/x", "patch")).expect("writable");
    setup.git(&["checkout", "-q", "--detach", "v1.0"]);
    setup.git(&["am", "-q", file.to_str().expect("a path of ours")]);
    assert_eq!(setup.git(&["rev-parse", "HEAD^{tree}"]), setup.git(&["rev-parse", "feature/x^{tree}"]));
    assert_eq!(
        setup.git(&["log", "-2", "--format=%s %an %at"]),
        setup.git(&["log", "-2", "--format=%s %an %at", "feature/x"])
    );
}

#[rstest]
fn a_comparison_counts_both_sides(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let compare = |range: &str| api.read(&format!("{REPO}/compare/{range}"));
    let ahead = compare("v1.0...feature%2Fx");
    assert_eq!((&ahead["status"], &ahead["ahead_by"], &ahead["behind_by"]), (&json!("ahead"), &json!(2), &json!(0)));
    assert_eq!(shas(&ahead["commits"]), lines(&setup.git(&["log", "--reverse", "--format=%H", "v1.0..feature/x"])));
    assert_eq!(ahead["merge_base_commit"]["sha"], ahead["base_commit"]["sha"]);
    assert_eq!(ahead["files"].as_array().map(Vec::len), Some(2));
    let behind = compare("main...v0.9");
    assert_eq!(
        (&behind["status"], &behind["behind_by"], &behind["total_commits"]),
        (&json!("behind"), &json!(2), &json!(0))
    );
    assert_eq!(compare("main...main")["status"], "identical");
    for range in ["main", "main..feature/x", "main...absent", "...main"] {
        assert_error(&api.get(&format!("{REPO}/compare/{range}")), 404);
    }
}

#[rstest]
fn objects_are_found_by_their_ids(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let refs = api.read(&format!("{REPO}/git/refs"));
    let listed: Vec<_> =
        refs.as_array().into_iter().flatten().map(|one| one["ref"].as_str().unwrap_or_default()).collect();
    assert_eq!(listed, ["refs/heads/feature/x", "refs/heads/main", "refs/tags/v0.9", "refs/tags/v1.0"]);
    let matching = |prefix: &str| api.read(&format!("{REPO}/git/matching-refs/{prefix}")).as_array().map(Vec::len);
    assert_eq!((matching("tags/v"), matching("heads/fea"), matching("heads/none")), (Some(2), Some(1), Some(0)));
    assert_error(&api.get(&format!("{REPO}/git/ref/heads/fea")), 404);

    let tree = api.read(&format!("{REPO}/git/trees/main?recursive=1"));
    assert_eq!(tree["sha"], setup.git(&["rev-parse", "main^{tree}"]));
    let ours: Vec<_> = tree["tree"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            format!("{} {} {}\t{}", text("mode"), text("type"), text("sha"), text("path"))
        })
        .collect();
    let gits = setup.alice.git.run(&setup.tree, &["-c", "core.quotePath=false", "ls-tree", "-r", "-t", "main"]).stdout;
    assert_eq!(ours, lines(&String::from_utf8_lossy(&gits)));
    let flat = api.read(&format!("{REPO}/git/trees/{}", tree["sha"].as_str().unwrap_or_default()));
    assert_eq!(flat["tree"].as_array().map(Vec::len), Some(6));
    let commit = setup.git(&["rev-parse", "main"]);
    assert_eq!(api.read(&format!("{REPO}/git/commits/{commit}"))["tree"]["sha"], tree["sha"]);
    for path in
        ["git/commits/main", "git/blobs/zzzz", "git/blobs/1111111111111111111111111111111111111111", "git/trees/absent"]
    {
        assert_error(&api.get(&format!("{REPO}/{path}")), 404);
    }
    assert_error(&api.get(&format!("{REPO}/git/blobs/{commit}")), 404);
}
