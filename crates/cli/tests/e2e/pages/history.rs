//! Branches, tags and the history of files, as someone who reads code meets them.

use super::browser::{Browser, location};
use super::logged_in;
use crate::support::{Person, person, query, server};
use abide_testkit::{Engine, Server, http};
use rstest::rstest;
use std::path::PathBuf;

struct Setup {
    server: Server,
    ann: Person,
    dir: PathBuf,
}

impl Setup {
    fn new(engine: Engine) -> Self {
        let server = server(engine);
        let ann = person(&server, "ann");
        ann.create(&server, "tool", false);
        let dir = ann.git.init_work_tree();
        Self { server, ann, dir }
    }

    /// Commits all that is in the work tree, at so many seconds.
    fn commit(&self, message: &str, seconds: u32) {
        self.ann.git.ok(&self.dir, &["add", "--all"]);
        // Small numbers are times only behind this sign.
        let date = format!("@{seconds} +0000");
        let mut command = self.ann.git.command(&self.dir, &["commit", "--quiet", "--allow-empty", "-m", message]);
        let done = command.env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date).output().expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn push(&self, refspecs: &[&str]) {
        let url = self.server.http_url("ann", "tool");
        self.ann.git.ok(&self.dir, &[&["push", "--quiet", "--force", &url], refspecs].concat());
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        Browser::new(&self.server).page(path)
    }
}

/// Where texts stand in a page; each must be there.
#[track_caller]
fn order(html: &str, texts: &[&str]) {
    let places: Vec<_> = texts.iter().map(|text| html.find(text).unwrap_or_else(|| panic!("{text}\n{html}"))).collect();
    assert!(places.is_sorted(), "{texts:?} are at {places:?}\n{html}");
}

#[rstest]
fn the_history_of_a_file_goes_on_behind_a_rename(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    std::fs::write(setup.dir.join("old <name>.txt"), &lines).expect("written");
    setup.commit("Add it", 1_000);
    setup.ann.git.ok(&setup.dir, &["mv", "old <name>.txt", "new.txt"]);
    setup.commit("Move it", 2_000);
    for number in 0..30 {
        std::fs::write(setup.dir.join("new.txt"), format!("{lines}{number}\n")).expect("written");
        setup.commit(&format!("Change {number}"), 3_000 + number);
    }
    setup.push(&["main"]);
    let first = setup.page("/ann/tool/commits/main/new.txt");
    assert!(first.contains("Change 29") && !first.contains("Add it"), "{first}");
    let second = setup.page("/ann/tool/commits/main/new.txt?page=2");
    order(&second, &["Move it", "Renamed from <span class=\"mono\">old &#60;name&#62;.txt", "Add it"]);
    assert!(!second.contains("rel=\"next\""), "{second}");
    // Each commit leads to the file as it was there, under the name that it had.
    let added = setup.ann.git.ok(&setup.dir, &["rev-list", "--max-parents=0", "HEAD"]);
    let view = format!("/ann/tool/blob/{}/old%20%3Cname%3E.txt", added.trim());
    assert!(second.contains(&format!("href=\"{view}\"")), "{second}");
    assert!(setup.page(&view).contains("line 39"));
    assert!(setup.page("/ann/tool/commits/HEAD/new.txt").contains("Change 29"));
}

#[rstest]
fn branches_and_tags_are_listed_newest_first_and_filtered(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut refs: Vec<String> = Vec::new();
    for number in 0..70_u32 {
        setup.commit(&format!("Commit {number}"), 1_000 + number * 10);
        // Names run against time, so that neither order is the other by chance.
        setup.ann.git.ok(&setup.dir, &["branch", &format!("topic-{:02}", 69 - number)]);
        setup.ann.git.ok(&setup.dir, &["tag", &format!("v0.{}", 69 - number)]);
        refs.extend([format!("topic-{:02}", 69 - number), format!("v0.{}", 69 - number)]);
    }
    refs.push("main".to_owned());
    setup.push(&refs.iter().map(String::as_str).collect::<Vec<_>>());
    let branches = setup.page("/ann/tool/branches");
    order(&branches, &[">main</a>", ">topic-00</a>", ">topic-01</a>", ">topic-48</a>", "rel=\"next\""]);
    assert!(!branches.contains(">topic-69</a>"));
    assert!(setup.page("/ann/tool/branches?page=2").contains(">topic-69</a>"));
    let tags = setup.page("/ann/tool/tags");
    order(&tags, &[">v0.0</a>", ">v0.1</a>", ">v0.9</a>", ">v0.10</a>"]);
    let found = setup.page("/ann/tool/tags?q=0.69");
    assert!(found.contains(">v0.69</a>") && !found.contains(">v0.1</a>"), "{found}");
    assert!(setup.page("/ann/tool/tags?q=nothing").contains("No matches"));

    // The menu has the newest ones, marks where one is, and finds the others without a script.
    let home = setup.page("/ann/tool/tree/topic-69");
    let menu = home.split("class=\"refs\"").nth(1).and_then(|rest| rest.split("</details>").next()).expect("a menu");
    order(menu, &[">topic-69</a>", ">main</a>", ">topic-00</a>", ">v0.0</a>", ">v0.1</a>"]);
    assert!(menu.contains("aria-current=\"true\">topic-69</a>") && !menu.contains(">v0.60</a>"), "{menu}");
    assert_eq!(menu.matches("aria-current").count(), 1, "{menu}");
    let find = "/ann/tool/tags?view=commits&path=%2Fsrc%2Fa%2520b&q=0.60";
    assert!(setup.page(find).contains("href=\"/ann/tool/commits/v0.60/src/a%20b\""), "{}", setup.page(find));

    // The order is that of this moment.
    setup.commit("Later", 90_000);
    setup.push(&["HEAD:refs/heads/topic-69", "HEAD:refs/tags/zero"]);
    order(&setup.page("/ann/tool/branches"), &[">main</a>", ">topic-69</a>", ">topic-00</a>"]);
    order(&setup.page("/ann/tool/tags"), &[">zero</a>", ">v0.0</a>"]);
}

#[rstest]
fn head_in_an_address_is_the_default_branch(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let stranger = Browser::new(&setup.server);
    assert_eq!(stranger.get("/ann/tool/tree/HEAD").status, 404, "nothing was pushed yet");
    std::fs::create_dir(setup.dir.join("src")).expect("made");
    std::fs::write(setup.dir.join("src/a.txt"), "on main\n").expect("written");
    setup.commit("One", 1_000);
    setup.push(&["main"]);
    std::fs::write(setup.dir.join("src/a.txt"), "on another\n").expect("written");
    setup.commit("Two", 2_000);
    let everything = |what: &str| {
        assert!(setup.page("/ann/tool/blob/HEAD/src/a.txt").contains(what));
        assert!(setup.page("/ann/tool/blame/HEAD/src/a.txt").contains(what));
        assert_eq!(stranger.get("/ann/tool/raw/HEAD/src/a.txt").text(), format!("{what}\n"));
        assert!(setup.page("/ann/tool/tree/HEAD/src").contains("a.txt"));
        assert!(setup.page("/ann/tool/tree/HEAD").contains("src"));
    };
    everything("on main");
    assert!(!setup.page("/ann/tool/commits/HEAD").contains("Two"));
    let api = http::get(setup.server.http_addr(), "/api/v3/repos/ann/tool/contents/src/a.txt?ref=HEAD", None);
    assert_eq!((api.status, api.json()["size"].as_i64()), (200, Some(8)), "{}", api.text());

    // A branch that is really called so changes nothing about it, and has an address of its own.
    let url = setup.server.http_url("ann", "tool");
    let pushed = setup.ann.git.run(&setup.dir, &["push", &url, "HEAD:refs/heads/HEAD", "HEAD:refs/heads/HEAD2/x"]);
    if !pushed.status.success() {
        let reported = String::from_utf8_lossy(&pushed.stderr).into_owned();
        assert!(reported.contains("HEAD"), "{reported}");
        return;
    }
    everything("on main");
    assert!(setup.page("/ann/tool/branches").contains("href=\"/ann/tool/tree/refs/heads/HEAD\""));
    assert!(setup.page("/ann/tool/blob/refs/heads/HEAD/src/a.txt").contains("on another"));
    assert!(setup.page("/ann/tool/tree/refs/heads/main").contains("src"));
}

#[rstest]
fn the_default_branch_is_chosen_from_a_list(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let ann = logged_in(&setup.server, "ann");
    let settings = "/ann/tool/settings";
    assert!(ann.page(settings).contains("<input id=\"default_branch\""), "while there is nothing to choose from");
    setup.commit("One", 1_000);
    for number in 0..120 {
        setup.ann.git.ok(&setup.dir, &["branch", &format!("topic-{number:03}")]);
    }
    setup.push(&["refs/heads/*"]);
    let html = ann.page(settings);
    let list = |html: &str| {
        let list = html.split("<select id=\"default_branch\"").nth(1).and_then(|rest| rest.split("</select>").next());
        list.unwrap_or_else(|| panic!("no list\n{html}")).to_owned()
    };
    assert!(list(&html).contains("<option value=\"main\" selected>main</option>"), "{}", list(&html));
    assert_eq!(list(&html).matches("<option").count(), 100, "as many as a list can have");
    let found = ann.page("/ann/tool/settings?branches=topic-00");
    assert_eq!(list(&found).matches("<option").count(), 11, "{}", list(&found));

    // The two forms of the page leave each other's fields as they are.
    let about = [("description", "A tool"), ("topics", "git forge")];
    assert_eq!(ann.submit_in(&html, settings, "name=\"description\"", &about).status, 303);
    let chosen = ann.submit_in(&found, settings, "name=\"default_branch\"", &[("default_branch", "topic-007")]);
    assert_eq!(location(&chosen), "/ann/tool/settings?done=saved");
    assert_eq!(query(&setup.server, "SELECT description, default_branch FROM repos"), "A tool|refs/heads/topic-007");
    let html = ann.page(settings);
    assert!(list(&html).contains("value=\"topic-007\" selected") && html.contains("value=\"git forge\""), "{html}");
    let wrong = ann.submit_in(&html, settings, "name=\"default_branch\"", &[("default_branch", "nothing")]);
    assert!(wrong.status == 400 && wrong.text().contains("id=\"default_branch-error\""), "{}", wrong.text());
    assert!(wrong.text().contains("value=\"A tool\""), "what was not sent is not lost");
}
