//! A repository with a bit of everything that the API shows.

use super::Api;
use crate::support::{Person, person, server};
use abide_testkit::{Engine, Server};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

pub struct Setup {
    pub server: Server,
    pub alice: Person,
    /// The work tree it was pushed from.
    pub tree: PathBuf,
}

impl Setup {
    pub fn api(&self) -> Api<'_> {
        Api::of(&self.server, &self.alice)
    }

    /// Output of git in the work tree.
    pub fn git(&self, args: &[&str]) -> String {
        self.alice.git.ok(&self.tree, args).trim_end().to_owned()
    }
}

/// `alice/project`: `main` with three commits, `feature/x` with one more, the annotated tag `v1.0` and the tag `v0.9`.
pub fn setup(engine: Engine) -> Setup {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let tree = alice.git.init_work_tree();
    let git = |args: &[&str]| alice.git.ok(&tree, args);

    std::fs::create_dir_all(tree.join("src/deep")).expect("writable");
    alice.git.commit_file(&tree, "README.md", "# Project\n", "Begin");
    git(&["tag", "v0.9"]);
    std::fs::write(tree.join("src/lib.rs"), "//! One.\n\npub fn one() {}\n").expect("writable");
    std::fs::write(tree.join("src/deep/README"), "Deep.\n").expect("writable");
    std::fs::write(tree.join("binary"), b"\0\x01\x02\xff").expect("writable");
    std::fs::write(tree.join(OsStr::from_bytes(b"caf\xe9")), "latin\n").expect("writable");
    std::os::unix::fs::symlink("src/lib.rs", tree.join("link")).expect("writable");
    git(&["add", "-A"]);
    let commit = git(&["rev-parse", "HEAD"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor", commit.trim())]);
    git(&["commit", "-q", "-m", "Add more\n\nAll of it."]);
    git(&["tag", "-a", "-m", "The first", "v1.0"]);
    alice.git.commit_file(&tree, "src/lib.rs", "//! Two.\n\npub fn one() {}\n", "Change a line");
    git(&["checkout", "-q", "-b", "feature/x"]);
    git(&["mv", "README.md", "READ ME.md"]);
    git(&["commit", "-q", "-m", "Rename"]);
    git(&["push", "-q", &server.http_url("alice", "project"), "main", "feature/x", "v0.9", "v1.0"]);
    Setup { server, alice, tree }
}
