//! A forge with accounts, keys and repositories, and an SSH server.

use abide_core::UserId;
use abide_core::repo::{Role, Visibility};
use abide_core::time::SystemClock;
use abide_forge::accounts::{self, SshKey, User, add_user, authenticate, ssh_keys};
use abide_forge::repos::{collaborators, create, delete};
use abide_forge::{Caller, Forge, Node, OsRandom, Settings};
use abide_git::{Git, GitLimits, Layout};
use abide_ssh::{Options, SshError, load_or_create_host_key};
use abide_store::Store;
use abide_store::repos::Repo;
use abide_testkit::GitClient;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct World {
    pub addr: SocketAddr,
    pub forge: Forge,
    pub stop: CancellationToken,
    pub serving: Option<JoinHandle<Result<(), SshError>>>,
    layout: Layout,
    runtime: Runtime,
    data: TempDir,
}

/// An account, and a git client with its key.
pub struct Person {
    pub git: GitClient,
    pub user: User,
    pub key: SshKey,
}

impl Person {
    pub fn private_key(&self) -> PathBuf {
        self.git.public_key().with_extension("")
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub fn with(change: impl FnOnce(&mut Options, &mut Settings)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let layout = Layout::new(data.path());
        let mut options = Options::new(data.path().join("ssh_host_ed25519_key"));
        let mut settings = Settings::default();
        (settings.disk.min_free_percent, settings.disk.stranger_free_percent) = (0, 0);
        change(&mut options, &mut settings);
        let host_key =
            load_or_create_host_key(&options.host_key, &OsRandom).unwrap().public_key().to_openssh().unwrap();
        let stop = CancellationToken::new();
        let (forge, listener) = runtime.block_on(async {
            let file = data.path().join("abide.db");
            let store = Store::open(&abide_store::Options::sqlite(file), Arc::new(SystemClock)).await.unwrap();
            let git = Git::detect(Path::new("git"), &layout, GitLimits::default()).await.unwrap();
            let node = Node::command("test");
            let forge = Forge::new(store, git, layout.clone(), Arc::new(OsRandom), settings, node, [7; 32].into());
            let socket = TcpSocket::new_v4().unwrap();
            // Large kernel buffers would hide how the server treats slow clients.
            socket.set_send_buffer_size(64 * 1024).unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            (forge, socket.listen(64).unwrap())
        });
        let addr = listener.local_addr().unwrap();
        let known = format!("[127.0.0.1]:{} {host_key}\n", addr.port());
        fs::write(data.path().join("known_hosts"), known).unwrap();
        let serving = runtime.spawn(abide_ssh::serve(forge.clone(), listener, options, stop.clone()));
        Self { addr, forge, stop, serving: Some(serving), layout, runtime, data }
    }

    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub fn person(&self, name: &str) -> Person {
        let git = GitClient::new().with_ssh_key();
        let request = add_user::Request {
            name: name.into(),
            email: format!("{name}@example.org"),
            password: "correct horse battery".into(),
            site_admin: false,
            verified: false,
        };
        let id = self.run(add_user::add_user(&self.forge, request)).unwrap();
        let user = self.run(accounts::by_id(&self.forge, id)).unwrap().unwrap();
        let key = self.add_key(id, &git.public_key());
        Person { git, user, key }
    }

    pub fn add_key(&self, user: UserId, public: &Path) -> SshKey {
        let line = fs::read_to_string(public).unwrap();
        self.run(ssh_keys::add(&self.forge, &Caller::anonymous(None), user, "test", &line)).unwrap()
    }

    pub fn caller(&self, person: &Person) -> Caller {
        self.run(authenticate::by_ssh_key(&self.forge, &person.key.fingerprint, None)).unwrap().unwrap()
    }

    pub fn repo(&self, owner: &Person, name: &str, visibility: Visibility) -> Repo {
        let request = create::Request {
            name: name.into(),
            description: String::new(),
            visibility,
            default_branch: None,
            init: None,
        };
        self.run(create::create(&self.forge, &self.caller(owner), request)).unwrap().repo
    }

    /// A repository with one commit on `main`.
    pub fn repo_with_commit(&self, owner: &Person, name: &str, visibility: Visibility) -> Repo {
        let repo = self.repo(owner, name, visibility);
        let work = owner.git.init_work_tree();
        owner.git.commit_file(&work, "README.md", "hello\n", "Say hello");
        owner.git.ok(&work, &["push", "--quiet", &self.url(&repo.slug()), "main"]);
        repo
    }

    pub fn share(&self, owner: &Person, repo: &Repo, with: &Person, role: Role) {
        self.run(collaborators::set(&self.forge, &self.caller(owner), repo, &with.user, role)).unwrap();
    }

    pub fn delete(&self, owner: &Person, repo: &Repo) {
        self.run(delete::delete(&self.forge, &self.caller(owner), repo)).unwrap();
    }

    pub fn remove_key(&self, person: &Person) {
        assert!(
            self.run(ssh_keys::remove(&self.forge, &Caller::anonymous(None), person.user.id, person.key.id)).unwrap()
        );
    }

    pub fn url(&self, path: &str) -> String {
        format!("ssh://git@{}/{path}.git", self.addr)
    }

    /// Directory of a repository.
    pub fn path(&self, repo: &Repo) -> PathBuf {
        self.layout.repo(repo.id)
    }

    /// The real `ssh` with an account's key.
    pub fn ssh(&self, person: &Person, options: &[&str], command: &[&str]) -> Command {
        self.ssh_with(&person.private_key(), options, command)
    }

    pub fn ssh_with(&self, key: &Path, options: &[&str], command: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "/dev/null", "-p", &self.addr.port().to_string(), "-i"])
            .arg(key)
            .args(["-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "BatchMode=yes"])
            .args(["-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null"])
            .arg("-o")
            .arg(format!("UserKnownHostsFile={}", self.data.path().join("known_hosts").display()))
            .args(options)
            .args(["git@127.0.0.1"])
            .args(command)
            .stdin(Stdio::null());
        ssh
    }

    /// Stops the server and waits for it.
    pub fn stop(&mut self) {
        self.stop.cancel();
        let serving = self.serving.take().expect("it is stopped once");
        self.runtime.block_on(serving).unwrap().unwrap();
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
