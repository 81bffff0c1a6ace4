//! A data directory with one bare repository, and clones to push from.

use abide_core::{Oid, RefName, RefUpdate, RepoId};
use abide_git::{Connected, Git, GitLimits, Incoming, Layout, PackOutcome, ReceiveError, ReceiveLimits, bare};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub struct Server {
    pub layout: Layout,
    pub git: Git,
    pub id: RepoId,
    pub repo: PathBuf,
    _data: TempDir,
}

impl Server {
    pub async fn new() -> Self {
        Self::with(GitLimits::default()).await
    }

    pub async fn with(limits: GitLimits) -> Self {
        let data = TempDir::with_prefix("abide:git").unwrap();
        let layout = Layout::new(data.path());
        let git = Git::detect(Path::new("git"), &layout, limits).await.unwrap();
        let id = RepoId::new(7);
        bare::init_bare(&layout, id, &name("refs/heads/main")).await.unwrap();
        Self { repo: layout.repo(id), layout, git, id, _data: data }
    }

    /// Runs git in the bare repository.
    pub fn run(&self, args: &[&str]) -> String {
        let output = plain_git(&self.repo).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub async fn incoming(&self, key: &str) -> Incoming {
        Incoming::create(&self.git, &self.layout, self.id, key).await.unwrap()
    }

    /// Receives a pack, migrates it if its tips are complete, and moves the refs.
    pub async fn push(&self, pack: &[u8], updates: &[RefUpdate]) -> Result<PackOutcome, ReceiveError> {
        let incoming = self.incoming("push").await;
        let outcome = incoming.receive(pack, &ReceiveLimits::default(), None).await?;
        let connected = self.connected(incoming, updates).await;
        connected.migrate(&self.repo).await.unwrap();
        abide_git::reftx::update_refs(&self.git, &self.repo, updates).await.unwrap();
        connected.discard().await.unwrap();
        Ok(outcome)
    }

    /// The proof that these updates are complete.
    pub async fn connected(&self, incoming: Incoming, updates: &[RefUpdate]) -> Connected {
        let (connected, refused) = incoming.connect(updates).await.unwrap();
        assert_eq!(refused, []);
        connected
    }

    /// Moves everything in an area into the repository, complete or not.
    pub async fn take_unproved(&self, incoming: Incoming) {
        self.connected(incoming, &[]).await.migrate(&self.repo).await.unwrap();
    }

    pub fn fsck(&self) {
        self.run(&["fsck", "--strict", "--full"]);
    }
}

/// A clone of a user.
pub struct Work(TempDir);

impl Work {
    pub fn new() -> Self {
        let work = Self(TempDir::new().unwrap());
        work.run(&["init", "-q", "-b", "main"]);
        work
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.feed(args, b"")).unwrap().trim().to_owned()
    }

    pub fn feed(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        feed(plain_git(self.path()).args(args), input)
    }

    pub fn commit(&self, text: &str) -> Oid {
        std::fs::write(self.path().join("file"), text).unwrap();
        self.run(&["add", "."]);
        self.run(&["commit", "-q", "-m", text.get(..20).unwrap_or(text)]);
        self.oid("HEAD")
    }

    pub fn commits(&self, count: usize) -> Oid {
        let mut script = String::new();
        for number in 1..=count {
            script += "commit refs/heads/main\ncommitter a <a@example.org> 1700000000 +0000\n";
            script += &format!("data 2\nc\n{}M 100644 inline f{number}\n", if number == 1 { "\n" } else { "" });
            script += &format!("data {}\n{number}\n", number.to_string().len() + 1);
        }
        self.feed(&["fast-import", "--quiet", "--force"], script.as_bytes());
        self.oid("refs/heads/main")
    }

    pub fn oid(&self, rev: &str) -> Oid {
        self.run(&["rev-parse", rev]).parse().unwrap()
    }

    /// The pack that a client would send for these revisions (`^x` for commits that the server has).
    pub fn pack(&self, revs: &[&str]) -> Vec<u8> {
        self.feed(&["pack-objects", "--stdout", "--revs", "--thin", "-q"], (revs.join("\n") + "\n").as_bytes())
    }

    pub fn push_to(&self, server: &Server) {
        let url = server.repo.to_str().unwrap();
        self.run(&["push", "-q", url, "refs/*:refs/*"]);
    }
}

/// git without user or system configuration.
pub fn plain_git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for (key, value) in [("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "1700000000 +0000")] {
        command.env(format!("GIT_AUTHOR_{key}"), value).env(format!("GIT_COMMITTER_{key}"), value);
    }
    command
}

pub fn feed(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    writer.join().unwrap().unwrap();
    output.stdout
}

pub fn name(text: &str) -> RefName {
    text.parse().unwrap()
}

pub fn update(text: &str, old: Oid, new: Oid) -> RefUpdate {
    RefUpdate { name: name(text), old, new }
}
