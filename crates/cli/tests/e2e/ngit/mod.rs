//! The published nostr client `ngit`, unchanged, as its users run it. `./test ngit` installs it; without it these
//! scenarios have nobody to play them.

mod maintainers;
mod owner;
mod person;
mod proposals;

use crate::grasp::setup::npub;
use crate::support::server;
use abide_testkit::{Engine, Server};
use person::Person;
use std::path::PathBuf;

/// A server, and an owner whose first commit is published with `ngit init`.
struct Published {
    server: Server,
    owner: Person,
    work: PathBuf,
    /// The first commit.
    first: String,
}

impl Published {
    fn new(engine: Engine) -> Self {
        let server = server(engine);
        let owner = Person::new(&server, 1);
        let work = owner.git.init_work_tree();
        let first = owner.git.commit_file(&work, "README.md", "hello\n", "first");
        owner.ngit(&work, &["init", "--name", "demo", "--grasp-server", &server.url(), "--defaults"]);
        Self { server, owner, work, first }
    }

    /// Where plain git finds it.
    fn http(&self) -> String {
        format!("{}/{}/demo.git", self.server.url(), npub(&self.owner.key))
    }

    /// Where git finds it with ngit's help.
    fn nostr(&self) -> String {
        let relay = format!("ws%3A%2F%2F{}", self.server.http_addr().to_string().replace(':', "%3A"));
        format!("nostr://{}/{relay}/demo", npub(&self.owner.key))
    }

    /// The refs that plain git lists, peeled tags left out.
    fn refs(&self) -> Vec<(String, String)> {
        let listed = self.owner.git.ok(&self.work, &["ls-remote", "--refs", &self.http()]);
        let pair = |line: &str| line.split_once('\t').map(|(oid, name)| (name.to_owned(), oid.to_owned()));
        listed.lines().filter_map(pair).collect()
    }

    /// Target of a ref, if it exists.
    fn at(&self, name: &str) -> Option<String> {
        self.refs().into_iter().find_map(|(found, oid)| (found == name).then_some(oid))
    }
}
