//! The real `git`, isolated from this machine's configuration.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::process;

/// Author and committer date, so that equal content gives equal object ids.
const DATE: &str = "2026-01-01T00:00:00Z";

/// A `git` client with its own home, identity and credentials, isolated from this machine. Clones share the home.
#[derive(Clone, Debug)]
pub struct GitClient {
    home: Arc<TempDir>,
    directories: Arc<AtomicUsize>,
    env: Vec<(OsString, OsString)>,
}

impl GitClient {
    /// A client without credentials.
    pub fn new() -> Self {
        let home = tempfile::Builder::new().prefix("abide-git-").tempdir().expect("a home can be made");
        let client = Self { home: Arc::new(home), directories: Arc::default(), env: Vec::new() };
        // Large files of tests are random data: neither deltas nor compression make them smaller.
        client.append_config(
            "[core]\n\tbigFileThreshold = 1m\n\
             [pack]\n\tcompression = 1\n\
             [user]\n\tname = Test Person\n\temail = person@example.org\n\
             [init]\n\tdefaultBranch = main\n\
             [advice]\n\tdetachedHead = false\n\
             [commit]\n\tgpgSign = false\n\
             [gc]\n\tauto = 0\n\
             [maintenance]\n\tauto = false\n",
        );
        client
    }

    /// Adds an access token, which git sends when the server asks for credentials.
    ///
    /// The token is in a file that only its owner can read, never in a process's arguments.
    pub fn with_token(self, token: &str) -> Self {
        write_private(&self.home.path().join("token"), format!("{token}\n").as_bytes());
        self.append_config("[credential]\n\tusername = token\n");
        self.with_env("GIT_ASKPASS", concat!(env!("CARGO_MANIFEST_DIR"), "/askpass"))
    }

    /// Adds a fresh ed25519 key for SSH; see [`GitClient::public_key`].
    pub fn with_ssh_key(mut self) -> Self {
        let key = self.private_key();
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(&key);
        process::expect_success("ssh-keygen", process::run(&mut keygen));
        let known_hosts = self.home.path().join("known_hosts");
        let ssh = format!(
            "ssh -F /dev/null -i '{}' -o IdentitiesOnly=yes -o IdentityAgent=none -o BatchMode=yes \
             -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile='{}' -o GlobalKnownHostsFile=/dev/null \
             -o LogLevel=ERROR",
            key.display(),
            known_hosts.display(),
        );
        self.env.push(("GIT_SSH_COMMAND".into(), ssh.into()));
        self.env.push(("GIT_SSH_VARIANT".into(), "ssh".into()));
        self
    }

    /// Adds an environment variable.
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Path of the public key of [`GitClient::with_ssh_key`].
    ///
    /// # Panics
    /// If the client has no key.
    pub fn public_key(&self) -> PathBuf {
        let path = self.private_key().with_extension("pub");
        assert!(path.exists(), "this client has no key; make it with GitClient::with_ssh_key()");
        path
    }

    /// A fresh, empty directory that lives as long as the client.
    pub fn fresh_dir(&self) -> PathBuf {
        let number = self.directories.fetch_add(1, Ordering::Relaxed);
        let dir = self.home.path().join(format!("dir-{number}"));
        fs::create_dir(&dir).expect("a directory can be made in our own home");
        dir
    }

    /// The command `git ARGS` in a directory, for a test that runs it itself.
    pub fn command(&self, dir: &Path, args: &[&str]) -> Command {
        self.program("git", dir, args)
    }

    /// A command that uses git, in a directory, with this client's home and configuration.
    pub fn program(&self, program: impl AsRef<OsStr>, dir: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        process::without_inherited(&mut command, "GIT_");
        command
            .args(args)
            .current_dir(dir)
            .env("HOME", self.home.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("SSH_AUTH_SOCK")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.config_file())
            // No sample hooks, which git would copy into every clone.
            .env("GIT_TEMPLATE_DIR", "")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "/bin/true")
            .env("GIT_EDITOR", "/bin/true")
            .env("GIT_AUTHOR_DATE", DATE)
            .env("GIT_COMMITTER_DATE", DATE)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `git ARGS` in a directory.
    pub fn run(&self, dir: &Path, args: &[&str]) -> Output {
        process::run(&mut self.command(dir, args))
    }

    /// Runs `git ARGS`, which must succeed, and returns its output without the final line break.
    ///
    /// # Panics
    /// If git fails; the message has its output.
    #[track_caller]
    pub fn ok(&self, dir: &Path, args: &[&str]) -> String {
        let mut printed = process::expect_success(&format!("git {}", args.join(" ")), self.run(dir, args));
        if printed.ends_with('\n') {
            printed.pop();
        }
        printed
    }

    /// Runs `git ARGS`, which must fail, and returns its stderr.
    ///
    /// # Panics
    /// If git succeeds.
    #[track_caller]
    pub fn fails(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.run(dir, args);
        let said = process::describe(&output);
        assert!(!output.status.success(), "git {} should have failed\n{said}", args.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs `git ARGS`, which must succeed, with the output of `feed` on its stdin.
    ///
    /// # Panics
    /// If git fails; the message has its output.
    #[track_caller]
    pub fn feed(
        &self,
        dir: &Path,
        args: &[&str],
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
    ) -> String {
        let output = process::run_with_input(&mut self.command(dir, args), feed);
        process::expect_success(&format!("git {}", args.join(" ")), output)
    }

    /// A fresh repository with a work tree, on the branch `main` without commits. Creates the useful part of `git init`
    /// without a process.
    pub fn init_work_tree(&self) -> PathBuf {
        let dir = self.fresh_dir();
        let git = dir.join(".git");
        let made = ["objects/pack", "refs/heads"].iter().try_for_each(|part| fs::create_dir_all(git.join(part)));
        made.and_then(|()| fs::write(git.join("HEAD"), "ref: refs/heads/main\n"))
            .and_then(|()| fs::write(git.join("config"), "[core]\n\tbare = false\n"))
            .expect("a repository can be made in our own home");
        dir
    }

    /// As [`GitClient::init_work_tree`], with the remote `origin`.
    pub fn init_work_tree_of(&self, url: &str) -> PathBuf {
        let dir = self.init_work_tree();
        let remote = format!("[remote \"origin\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
        append(&dir.join(".git/config"), &remote);
        dir
    }

    /// Writes a file, commits it, and returns the id of the commit.
    #[track_caller]
    pub fn commit_file(&self, dir: &Path, name: &str, content: impl AsRef<[u8]>, message: &str) -> String {
        let path = dir.join(name);
        let parent = path.parent().expect("a file is in a directory");
        fs::create_dir_all(parent).expect("a directory can be made in a work tree");
        let new = !path.exists();
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if new {
            self.ok(dir, &["add", "--", name]);
        }
        // git prints `[main 0123…] message`, which saves a second call for the id.
        let said = self.ok(dir, &["-c", "core.abbrev=no", "commit", "--message", message, "--include", "--", name]);
        let id = said.split([' ', ']']).find(|word| word.len() >= 40 && word.bytes().all(|b| b.is_ascii_hexdigit()));
        id.unwrap_or_else(|| panic!("git should name the commit, but said {said:?}")).to_owned()
    }

    fn private_key(&self) -> PathBuf {
        self.home.path().join("id_ed25519")
    }

    fn config_file(&self) -> PathBuf {
        self.home.path().join(".gitconfig")
    }

    fn append_config(&self, text: &str) {
        append(&self.config_file(), text);
    }
}

impl Default for GitClient {
    fn default() -> Self {
        Self::new()
    }
}

fn append(file: &Path, text: &str) {
    let opened = fs::OpenOptions::new().create(true).append(true).open(file);
    let appended = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    appended.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

fn write_private(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our own file can be closed to others");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_gives_equal_commits_whoever_runs_it() {
        let commit = || {
            let git = GitClient::new();
            let dir = git.init_work_tree();
            let oid = git.commit_file(&dir, "docs/hello.txt", "hello\n", "Say hello");
            assert_eq!(git.ok(&dir, &["symbolic-ref", "HEAD"]), "refs/heads/main");
            oid
        };
        assert_eq!(commit(), commit());
    }

    #[test]
    fn a_token_is_offered_to_any_server_that_asks() {
        let git = GitClient::new().with_token("abide_pat_secret");
        let question = "protocol=http\nhost=127.0.0.1:4711\n\n";
        let answer = git.feed(&git.fresh_dir(), &["credential", "fill"], |input| input.write_all(question.as_bytes()));
        assert!(answer.contains("username=token\npassword=abide_pat_secret\n"), "{answer}");
    }

    #[test]
    fn without_a_token_nobody_is_asked_for_one() {
        let git = GitClient::new();
        let dir = git.fresh_dir();
        let complaint = git.fails(&dir, &["ls-remote", "http://127.0.0.1:1/nobody/nothing.git"]);
        assert!(complaint.contains("unable to access"), "{complaint}");
    }

    #[test]
    fn an_ssh_key_can_be_shown_to_the_server() {
        let git = GitClient::new().with_ssh_key();
        let public = fs::read_to_string(git.public_key()).expect("the public key is readable");
        assert!(public.starts_with("ssh-ed25519 "), "{public}");

        let complaint = git.fails(&git.fresh_dir(), &["ls-remote", "ssh://git@127.0.0.1:1/nobody/nothing.git"]);
        assert!(complaint.contains("connect to host 127.0.0.1 port 1: Connection refused"), "{complaint}");
    }
}
