//! A private server: another process of this binary, or of the binary to measure.

use super::client::{Remote, judge};
use super::data;
use super::process::Process;
use crate::Failure;
use crate::io;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const USER: &str = "bench";

pub(crate) struct Server {
    process: Process,
    binary: PathBuf,
    data: PathBuf,
    http: String,
    ssh: String,
    token: String,
    /// Held open: a server that prints into a closed pipe would fail.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts on a data directory, which may be new, and returns the time until it was ready.
    pub(crate) fn start(binary: &Path, data: &Path) -> Result<(Self, Duration), Failure> {
        Self::start_with(binary, data, &[])
    }

    /// As [`Server::start`], with settings as environment variables.
    pub(crate) fn start_with(
        binary: &Path,
        data: &Path,
        settings: &[(&str, &str)],
    ) -> Result<(Self, Duration), Failure> {
        std::fs::create_dir_all(data).map_err(io("make a data directory"))?;
        let mut command = abide(binary, data);
        command.envs(settings.iter().copied());
        command.args(["serve", "--listen", "127.0.0.1:0", "--ssh-listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let start = Instant::now();
        let mut process = Process::start(&mut command, &data.with_extension("log"))?;
        let mut stdout = BufReader::new(process.stdout().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).map_err(io("read what the server says"))?;
        let took = start.elapsed();
        let Some((http, ssh)) = addresses(&line) else {
            return Err(Failure::failed(format!("the server did not start: {}", process.last_words())));
        };
        let (binary, data) = (binary.to_owned(), data.to_owned());
        Ok((Self { process, binary, data, http, ssh, token: String::new(), _stdout: stdout }, took))
    }

    /// Adds an account that may push.
    pub(crate) fn with_account(mut self) -> Result<Self, Failure> {
        self.cli(
            &["user", "add", USER, "--email", "bench@example.org", "--password-stdin"],
            "a password for a moment",
        )?;
        self.token = self.cli(&["token", "add", USER, "--scopes", "repo,user"], "")?;
        Ok(self)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Runs a command of the same binary on the same data.
    pub(crate) fn cli(&self, args: &[&str], input: &str) -> Result<String, Failure> {
        let mut command = abide(&self.binary, &self.data);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(io("start the binary"))?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        stdin.write_all(input.as_bytes()).map_err(io("write to the binary"))?;
        drop(stdin);
        let output = child.wait_with_output().map_err(io("wait for the binary"))?;
        judge(&format!("abide {}", args.join(" ")), &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Creates a repository over the API.
    pub(crate) fn create(&self, name: &str) -> Result<Repo, Failure> {
        let body = json!({ "name": name }).to_string();
        let mut stream = TcpStream::connect(&self.http).map_err(io("connect to the server"))?;
        let request = format!(
            "POST /api/v3/user/repos HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.http,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(io("send a request"))?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(io("read an answer"))?;
        let json = answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok());
        match json.as_ref().and_then(|json| json["id"].as_i64()) {
            Some(id) => Ok(Repo { id, name: name.to_owned() }),
            None => Err(Failure::failed(format!("the server made no repository: {answer}"))),
        }
    }

    /// Address of HTTP.
    pub(crate) fn address(&self) -> &str {
        &self.http
    }

    /// Base URL of a repository's pages.
    pub(crate) fn page(&self, repo: &Repo) -> String {
        format!("/{USER}/{}", repo.name)
    }

    /// Remote of a repository over HTTP, with the token.
    pub(crate) fn http(&self, repo: &Repo) -> Remote {
        let header = format!("Authorization: Bearer {}", self.token);
        Remote {
            url: format!("http://{}/{USER}/{}.git", self.http, repo.name),
            settings: vec![("http.extraHeader", header)],
        }
    }

    /// Remote of a repository over SSH, with the SSH command.
    pub(crate) fn ssh(&self, repo: &Repo, command: String) -> Remote {
        let url = format!("ssh://git@{}/{USER}/{}.git", self.ssh, repo.name);
        Remote { url, settings: vec![("core.sshCommand", command)] }
    }

    pub(crate) fn add_ssh_key(&self, public: &Path) -> Result<(), Failure> {
        self.cli(&["ssh-key", "add", USER, &public.to_string_lossy()], "").map(drop)
    }

    pub(crate) fn path(&self, repo: &Repo) -> Result<PathBuf, Failure> {
        self.cli(&["repo", "path", &repo.id.to_string()], "").map(PathBuf::from)
    }

    /// Fills a repository with the objects and refs of another one, before the server looks at it for the first time.
    ///
    /// Many refs are not pushed over HTTP, because the client compares each with all others, which takes minutes.
    pub(crate) fn fill(&self, repo: &Repo, from: &Path) -> Result<(), Failure> {
        let dir = self.path(repo)?;
        data::copy_repository(from, &dir).map_err(io("fill a repository"))
    }

    /// Runs the maintenance job of a repository, and waits until the server runs no other.
    pub(crate) fn maintain(&self, repo: &Repo) -> Result<(), Failure> {
        self.settle()?;
        let payload = json!({ "repo_id": repo.id }).to_string();
        self.cli(&["jobs", "run", "repo:maintain", "--payload", &payload], "")?;
        self.settle()
    }

    /// Waits until the server runs no maintenance job.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        const PATIENCE: Duration = Duration::from_secs(600);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let list = self.cli(&["jobs", "list", "--json"], "")?;
            let jobs: Vec<Value> = serde_json::from_str(&list)
                .map_err(|error| Failure::failed(format!("cannot read the list of jobs: {error}")))?;
            let open = |job: &Value| {
                job["kind"] == "repo:maintain" && ["waiting", "running"].map(Value::from).contains(&job["state"])
            };
            if !jobs.iter().any(open) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(Failure::failed("the server does not come to an end with tidying repositories"))
    }
}

/// A repository of the private server.
pub(crate) struct Repo {
    id: i64,
    name: String,
}

impl Repo {
    /// A repository that was not created by [`Server::create`].
    pub(crate) fn new(id: i64, name: &str) -> Self {
        Self { id, name: name.to_owned() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The binary on that data, with the environment cleared, so that the benchmark cannot use a real database.
fn abide(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ABIDE_") {
            command.env_remove(name);
        }
    }
    command.arg("--data").arg(data);
    command
}

/// Reads `Abide is ready at http://HOST:PORT (ssh HOST:PORT)`.
fn addresses(line: &str) -> Option<(String, String)> {
    let rest = line.trim().strip_prefix("Abide is ready at http://")?;
    let (http, ssh) = rest.split_once(" (ssh ")?;
    Some((http.to_owned(), ssh.strip_suffix(')')?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_read() {
        let line = "Abide is ready at http://127.0.0.1:1 (ssh 127.0.0.1:2)\n";
        assert_eq!(addresses(line), Some(("127.0.0.1:1".into(), "127.0.0.1:2".into())));
        assert_eq!(addresses(""), None);
    }
}
