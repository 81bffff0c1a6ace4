//! The pages, as someone with a browser meets them: forms are filled in as they stand on the page.

mod admin;
mod attention;
pub mod browser;
mod coming_in;
mod feeds;
pub mod forged;
mod governed;
mod history;
mod issues;
pub mod keys;
mod lifecycle;
mod markup;
mod names;
mod notifications;
mod purgatory;
mod questions;
mod sessions;
mod settings;
mod strangers;
mod threads;
mod two_factor;

use crate::support::builder;
use abide_testkit::{Engine, PASSWORD, Server, eventually};
use browser::Browser;
use std::fs;
use std::time::Duration;

/// More than anything here takes, even on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A server where everyone may sign up.
pub fn open_server(engine: Engine) -> Server {
    builder(engine).env("ABIDE_SIGNUP__MODE", "open").start()
}

/// Adds an account that administers the site.
#[track_caller]
pub fn add_admin(server: &Server, name: &str) {
    let email = format!("{name}@example.org");
    let args = ["user", "add", name, "--email", &email, "--password-stdin", "--admin"];
    let output = server.cli_stdin(&args, format!("{PASSWORD}\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A browser in which someone is logged in.
#[track_caller]
pub fn logged_in<'a>(server: &'a Server, name: &str) -> Browser<'a> {
    let browser = Browser::new(server);
    browser.log_in(name, PASSWORD);
    browser
}

/// Waits for a mail with a link to such a page and returns the link's path.
#[track_caller]
pub(crate) fn mailed_link(server: &Server, page: &str) -> String {
    let outbox = server.data_dir().join("outbox");
    let mut found = None;
    eventually(SOON, || {
        let files = fs::read_dir(&outbox).into_iter().flatten().flatten().map(|file| file.path());
        let mails = files.filter(|path| path.extension().is_some_and(|ending| ending == "eml"));
        found = mails.filter_map(|path| link_in(&fs::read_to_string(path).ok()?, page)).next();
        found.is_some()
    });
    found.expect("it was waited for")
}

/// The path of the link to a page, whatever a mail does to long lines.
fn link_in(mail: &str, page: &str) -> Option<String> {
    let text = mail.replace("=\r\n", "");
    let at = text.find(&format!("/{page}/"))?;
    let end = text[at..].find(|c: char| c.is_whitespace())?;
    Some(text[at..at + end].to_owned())
}
