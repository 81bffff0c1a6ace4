//! Names are shown as text on every page: what a browser's parser makes of the page has no element and no attribute that
//! came out of a name.

use crate::beside::Beside as _;
use crate::grasp::setup::{Setup, npub};
use crate::pages::logged_in;
use crate::support::{person, query, server};
use abide_testkit::{Engine, GitClient, Key, Server, http};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use rstest::rstest;
use serde_json::json;
use std::cell::RefCell;
use std::fs;

/// Breaks out of text, of attributes with both kinds of quotes and without any, if it is not escaped.
const HOSTILE: &str = "a\" xattr=1 x='\"><xelement xattr=2>' xattr=3 ";
/// The same without what git forbids in names of refs.
const HOSTILE_REF: &str = "a\"xattr=1/x'\"><xelement/xattr=2>'xattr=3";

/// Collects every element and attribute that a browser would see, and every address that it would follow or load.
#[derive(Default)]
struct Seen {
    names: RefCell<Vec<String>>,
    addresses: RefCell<Vec<String>>,
}

/// Schemes of addresses on pages; others, such as `javascript`, come from a name.
const SCHEMES: &[&str] = &["http", "https", "mailto", "nostr", "ssh"];

/// The scheme of an address as browsers read it; none of a relative one. They skip spaces and control characters.
fn scheme(address: &str) -> Option<String> {
    let address: String = address.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    let (scheme, _) = address.split_once(':')?;
    let is_one = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_one.then(|| scheme.to_ascii_lowercase())
}

impl TokenSink for Seen {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        if let Token::TagToken(tag) = token {
            let mut names = self.names.borrow_mut();
            names.push(tag.name.to_string());
            names.extend(tag.attrs.iter().map(|attribute| attribute.name.local.to_string()));
            const LEADS: [&str; 4] = ["href", "src", "action", "formaction"];
            let leading = tag.attrs.iter().filter(|attribute| LEADS.contains(&&*attribute.name.local));
            self.addresses.borrow_mut().extend(leading.map(|attribute| attribute.value.to_string()));
        }
        TokenSinkResult::Continue
    }
}

#[track_caller]
fn assert_tame(path: &str, html: &str) {
    let tokenizer = Tokenizer::new(Seen::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let names = tokenizer.sink.names.take();
    let injected: Vec<_> = names.iter().filter(|name| name.contains("xattr") || name.contains("xelement")).collect();
    assert!(injected.is_empty(), "{path} has {injected:?} out of a name:\n{html}");
    let addresses = tokenizer.sink.addresses.take();
    let leads_out = |address: &&String| scheme(address).is_some_and(|scheme| !SCHEMES.contains(&&*scheme));
    let hostile: Vec<_> = addresses.iter().filter(leads_out).collect();
    assert!(hostile.is_empty(), "{path} leads to {hostile:?}:\n{html}");
}

#[test]
fn the_test_itself_sees_what_is_injected() {
    for html in [
        format!("<p title=\"{HOSTILE}\">"),
        format!("<p title='{HOSTILE}'>"),
        format!("<p>{HOSTILE}"),
        format!("<a href=\"{HOSTILE_REF}\">"),
        "<a href=\"javascript:alert(1)\">".to_owned(),
        "<a href=' JAVA\tSCRIPT:alert(1)'>".to_owned(),
        "<img src=data:text/html,x>".to_owned(),
    ] {
        let caught = std::panic::catch_unwind(|| assert_tame("", &html));
        assert!(caught.is_err(), "{html}");
    }
    assert_tame("", "<a href='/a:b'><a href='?q=label:x'><a href='https://x'><a href='ssh://x'><img src='x.png'>");
}

/// A site where everything that can have a name has a hostile one.
fn setup(engine: Engine) -> Server {
    let server = server(engine);
    server.add_admin("carol");
    let bob = person(&server, "bob");
    let token = server.add_token("carol", "repo,user,hooks");
    let call = |method: &str, path: &str, body: serde_json::Value| {
        let answer = http::json(method, server.http_addr(), &format!("/api/v3{path}"), Some(&token), &body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text());
    };
    call("POST", "/user/repos", json!({ "name": "tool", "description": HOSTILE }));
    call("PATCH", "/user", json!({ "name": HOSTILE, "bio": HOSTILE, "location": HOSTILE }));
    let git = GitClient::new().with_token(&token);
    let tree = git.init_work_tree();
    fs::create_dir(tree.join(HOSTILE)).expect("any name will do");
    for (ending, content) in
        [(".png", "x"), (".md", "# x\n"), (".rs", "fn a() {}\n"), (".svg", "<svg/>"), (".bin", "\0")]
    {
        fs::write(tree.join(format!("{HOSTILE}{ending}")), content).expect("any name will do");
        fs::write(tree.join(HOSTILE).join(format!("{HOSTILE}{ending}")), content).expect("any name will do");
    }
    std::os::unix::fs::symlink(HOSTILE, tree.join(format!("{HOSTILE}.link"))).expect("any name will do");
    git.ok(&tree, &["add", "."]);
    git.ok(&tree, &["-c", &format!("user.name={HOSTILE}"), "commit", "-m", HOSTILE]);
    fs::rename(tree.join(format!("{HOSTILE}.rs")), tree.join(format!("{HOSTILE}2.rs"))).expect("it is there");
    git.ok(&tree, &["add", "."]);
    git.ok(&tree, &["-c", &format!("user.name={HOSTILE}"), "commit", "-m", HOSTILE]);
    git.ok(&tree, &["tag", "-a", "-m", HOSTILE, HOSTILE_REF]);
    let branch = format!("HEAD:refs/heads/{HOSTILE_REF}");
    git.ok(&tree, &["push", &server.http_url("carol", "tool"), "HEAD:refs/heads/main", &branch, HOSTILE_REF]);
    call(
        "POST",
        "/repos/carol/tool/labels",
        json!({ "name": "a\"xattr=1'><xelement>", "color": "d73a4a", "description": HOSTILE }),
    );
    call("POST", "/repos/carol/tool/milestones", json!({ "title": HOSTILE, "description": HOSTILE }));
    let labels = json!(["a\"xattr=1'><xelement>"]);
    call(
        "POST",
        "/repos/carol/tool/issues",
        json!({ "title": HOSTILE, "body": HOSTILE, "labels": labels, "milestone": 1 }),
    );
    call("POST", "/repos/carol/tool/issues/1/comments", json!({ "body": HOSTILE }));
    let comment = json!({ "body": format!("@carol {HOSTILE}") });
    let said = http::post(server.http_addr(), "/api/v3/repos/carol/tool/issues/1/comments", Some(&bob.token), &comment);
    assert_eq!(said.status, 201, "{}", said.text());
    server
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'/' { "/".into() } else { format!("%{byte:02X}") }).collect()
}

/// The address of every page, with hostile names where one can stand.
fn addresses(server: &Server) -> Vec<String> {
    let user = query(server, "SELECT id FROM users WHERE name = 'carol'");
    let oid = |sql: &str| query(server, sql);
    let comment = oid("SELECT min(id) FROM comments");
    let (reference, name) = (encoded(HOSTILE_REF), encoded(HOSTILE));
    let mut all = Vec::new();
    for path in abide_web_pages::page_paths() {
        let path = path.replace("{owner}", "carol").replace("{repo}", "tool").replace("{number}", "1");
        let path = match path.contains("/comments/") {
            true => path.replace("{id}", &comment),
            false => path.replace("{id}", &user),
        };
        if !path.contains("{*rest}") {
            all.push(path.replace(['{', '}'], ""));
            continue;
        }
        for at in ["main", &reference] {
            all.push(path.replace("{*rest}", at));
            all.push(path.replace("{*rest}", &format!("{at}/{name}")));
            for ending in [".png", ".md", "2.rs", ".svg", ".bin", ".link"] {
                all.push(path.replace("{*rest}", &format!("{at}/{name}{ending}")));
            }
            all.push(path.replace("{*rest}", &format!("{at}/{name}/{name}.png")));
        }
        all.push(path.replace("{*rest}", &format!("main...{reference}")));
    }
    for query in
        ["/search?q=", "/explore?q=", "/carol/tool/issues?q=", "/login?next=", "/carol?tab=", "/admin/users?q="]
    {
        all.push(format!("{query}{name}"));
    }
    all
}

#[rstest]
fn a_hostile_name_is_text_on_every_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let browser = logged_in(&server, "carol");
    let (mut shown, mut pictures) = (0, 0);
    for path in addresses(&server) {
        let answer = browser.get(&path);
        let html = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if !html || path == "/logout" {
            continue;
        }
        let text = answer.text();
        assert_tame(&path, &text);
        shown += usize::from(answer.status == 200 && text.contains("xelement"));
        pictures += usize::from(text.contains("class=\"picture\""));
    }
    assert!(shown > 30, "only {shown} pages show a name");
    assert!(pictures > 0, "no picture was shown");
}

/// Pages about nostr threads and entries of purgatory, webhooks, transfer offers, deleted repositories, tokens, SSH keys and
/// old names. Every one of them must be there, so that its template is really shown.
#[rstest]
fn hostile_text_of_threads_offers_and_settings_is_text_too(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    setup.served(&owner, "tool", &[&["name", HOSTILE], &["description", HOSTILE], &["t", HOSTILE], &["web", HOSTILE]]);
    setup.announce(&owner, "waits", &[&["name", HOSTILE], &["description", HOSTILE]]);
    let coordinate = owner.coordinate("tool");
    let begun = [(1621, "an issue"), (1617, "a patch")].map(|(kind, about)| {
        let tags: &[&[&str]] =
            &[&["a", &coordinate], &["subject", HOSTILE], &["t", HOSTILE], &["branch-name", HOSTILE], &["alt", about]];
        owner.event(Key::now(), kind, tags, HOSTILE)
    });
    for event in &begun {
        assert!(setup.relay.publish(event).0);
        let (id, kind) = (event.id.to_hex(), event.kind.to_string());
        let comment: &[&[&str]] = &[&["E", &id], &["K", &kind], &["A", &coordinate], &["e", &id], &["k", &kind]];
        assert!(setup.relay.publish(&owner.event(Key::now(), 1111, comment, HOSTILE)).0);
    }
    assert!(setup.relay.publish(&owner.event(Key::now(), 0, &[], &json!({ "name": HOSTILE }).to_string())).0);

    let server = &setup.server;
    server.add_admin("carol");
    let bob = person(server, "bob");
    let token = server.add_token("carol", "repo,user,hooks,keys");
    let call = |token: &str, method: &str, path: &str, body: serde_json::Value| {
        let answer = http::json(method, server.http_addr(), &format!("/api/v3{path}"), Some(token), &body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text());
        answer.json()
    };
    for name in ["old", "gone"] {
        call(&token, "POST", "/user/repos", json!({ "name": name, "description": HOSTILE }));
    }
    call(&token, "PATCH", "/repos/carol/old", json!({ "name": "later" }));
    let url = format!("https://example.org/?{HOSTILE_REF}");
    let hook = call(&token, "POST", "/repos/carol/later/hooks", json!({ "config": { "url": url } }))["id"].to_string();
    let deleted = http::json("DELETE", server.http_addr(), "/api/v3/repos/carol/gone", Some(&token), &json!({}));
    assert_eq!(deleted.status, 204, "{}", deleted.text());
    call(&bob.token, "POST", "/user/repos", json!({ "name": "gift", "description": HOSTILE }));
    let offer = call(&bob.token, "POST", "/repos/bob/gift/transfer", json!({ "new_owner": "carol" }))["id"].to_string();
    let key = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("it is there");
    call(&token, "POST", "/user/keys", json!({ "title": HOSTILE, "key": key }));
    server.cli_ok(&["token", "add", "carol", "--scopes", "repo", "--label", HOSTILE]);

    let browser = logged_in(server, "carol");
    let tool = format!("/{}/tool", npub(&owner));
    let threads = begun.iter().map(|event| format!("{tool}/nostr/{}", event.id.to_hex()));
    let rest = [
        tool.clone(),
        format!("{tool}/issues"),
        format!("{tool}/proposals"),
        format!("/{}/waits", npub(&owner)),
        format!("/{}", npub(&owner)),
        format!("/carol/later/settings/webhooks/{hook}"),
        "/carol/later/settings/webhooks".into(),
        "/carol/later/settings/old-names".into(),
        format!("/transfers/{offer}"),
        "/settings/repositories".into(),
        "/settings/tokens".into(),
        "/settings/keys".into(),
        "/notifications".into(),
        "/admin/audit".into(),
        "/explore".into(),
    ];
    let mut shown = 0;
    for path in threads.chain(rest) {
        let answer = browser.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_tame(&path, &answer.text());
        shown += usize::from(answer.text().contains("xelement"));
    }
    assert!(shown >= 10, "only {shown} pages show the text");
}
