//! Attacks that ask for pages which are costly to make.

use super::attacks::Front;
use abide_testkit::http::{Request, Response};
use abide_testkit::{Key, Nostr, connect_from};
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long an attacker waits for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Issues with ever new texts that nest, for a repository of somebody else, and readers of them.
pub fn nested_markdown(front: &Front) {
    let texts = [
        "> ".repeat(60_000),
        "[".repeat(60_000),
        "<div>".repeat(20_000),
        "* ".repeat(60_000),
        // As deep as texts may be, on every line.
        format!("{}x\n", "> ".repeat(49)).repeat(1200),
        format!("<p>{}{}", "<font a=1>".repeat(60), "<p>x".repeat(20_000)),
        format!("<script>{}", "</a ".repeat(60_000)),
    ];
    let number = AtomicU32::new(0);
    again(front, 3, || {
        let at = number.fetch_add(1, Ordering::Relaxed);
        front.tally.tries();
        let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) else {
            return front.tally.is_refused();
        };
        // The same text is rendered once, so each is another one.
        let text = format!("{}\n\n{at}", texts[at as usize % texts.len()]);
        let tags: &[&[&str]] = &[&["a", &front.target.coordinate], &["subject", "x"]];
        let issue = front.target.key.event(Key::now(), 1621, tags, &text);
        let (taken, why) = relay.publish(&issue);
        if !taken {
            return front.tally.is_told(false, &why);
        }
        let page = Request::new("GET", &format!("{}/nostr/{}", front.target.kept, issue.id.to_hex()));
        ask_and_leave(front, &page);
        ask_and_leave(front, &page);
        asked(front, &page);
    });
}

/// Blame and path history by somebody without an account, of ever other commits.
pub fn blame(front: &Front) {
    let number = AtomicU32::new(0);
    again(front, 6, || {
        let at = number.fetch_add(1, Ordering::Relaxed) as usize;
        let commit = &front.target.commits[at % front.target.commits.len()];
        let file = at % super::honest::FILES;
        front.tally.tries();
        ask_and_leave(front, &Request::new("GET", &format!("/alice/history/commits/{commit}/file{file}")));
        asked(front, &Request::new("GET", &format!("/alice/history/blame/{commit}/file{file}")));
    });
}

/// The largest answers that are made in memory, taken as fast as they come.
pub fn large_answers(front: &Front) {
    let number = AtomicU32::new(0);
    let pages = large_pages(front);
    again(front, 12, || {
        front.tally.tries();
        asked(front, &pages[number.fetch_add(1, Ordering::Relaxed) as usize % pages.len()]);
    });
}

/// A blob as JSON, the page of a long source file, and the page of a commit that made it.
pub fn large_pages(front: &Front) -> Vec<Request> {
    let blob = format!("/api/v3/repos/alice/large/git/blobs/{}", front.target.blob);
    let commit = format!("/alice/large/commit/{}", front.target.large);
    [&blob, "/alice/large/blob/main/code.rs", "/alice/large/blame/main/code.rs", &commit]
        .map(|path| Request::new("GET", path))
        .into()
}

/// Asks for a page and counts what comes.
fn asked(front: &Front, page: &Request) {
    if let Some(answer) = answer(front, page) {
        front.tally.is_told(answer.status == 200, &answer.status.to_string());
    }
}

/// Asks for a page and is gone before it comes.
fn ask_and_leave(front: &Front, page: &Request) {
    let Ok(mut stream) = connect_from(front.from, front.target.addr) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    if stream.write_all(&page.to_bytes(front.target.addr)).is_ok() {
        let _ = stream.read(&mut [0; 64]);
    }
}

/// The answer to a request; `None` if the siege is over before it is here. A connection that is closed without an answer
/// counts as refused.
pub fn answer(front: &Front, request: &Request) -> Option<Response> {
    let Ok(mut stream) = connect_from(front.from, front.target.addr) else {
        front.tally.is_refused();
        return None;
    };
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    // A server that refuses early closes before it has read everything; its answer still counts.
    let _ = stream.write_all(&request.to_bytes(front.target.addr));
    #[allow(clippy::disallowed_methods, reason = "an attacker waits for real seconds")]
    let start = Instant::now();
    let mut bytes = Vec::new();
    let mut part = [0; 16 << 10];
    while !front.is_over() && start.elapsed() < PATIENCE {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&part[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let response = Response::parse(&bytes).ok();
    if response.is_none() && !front.is_over() {
        front.tally.is_refused();
    }
    response
}

/// Does something over and over, several at a time.
pub fn again(front: &Front, at_once: usize, attack: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while !front.is_over() {
                    attack();
                }
            });
        }
    });
}
