//! The reference: `git http-backend` behind nginx and fcgiwrap, tuned for speed.

use super::client::{Client, Remote};
use super::data;
use super::process::{Process, find};
use crate::Failure;
use crate::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The same value as `abide-git` sets for every process, so that an acknowledged push survives a loss of power.
const FSYNC: &str = "committed,pack-metadata,reference";

/// Enough workers that no request waits for another.
const WORKERS: &str = "4";

/// Time for nginx and fcgiwrap to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Reference {
    repos: PathBuf,
    address: String,
    _nginx: Process,
    _fcgiwrap: Process,
}

/// Reason for a missing reference.
pub(crate) enum Absent {
    /// These Debian packages are not installed.
    Missing(String),
    Failed(Failure),
}

impl From<Failure> for Absent {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Reference {
    /// Starts both as the current user, on files below `dir` only.
    pub(crate) fn start(client: &Client, dir: &Path) -> Result<Self, Absent> {
        let programs =
            [("nginx", "nginx-light"), ("fcgiwrap", "fcgiwrap")].map(|(name, package)| (find(name), package));
        let [(Some(nginx), _), (Some(fcgiwrap), _)] = programs else {
            let missing = programs.iter().filter(|(found, _)| found.is_none()).map(|(_, package)| *package);
            return Err(Absent::Missing(missing.collect::<Vec<_>>().join(" ")));
        };
        let repos = dir.join("repos");
        std::fs::create_dir_all(&repos).map_err(io("make a directory"))?;
        let backend = PathBuf::from(client.text(dir, &["--exec-path"])?).join("git-http-backend");
        let socket = dir.join("fcgi");
        let mut command = Command::new(fcgiwrap);
        command.args(["-c", WORKERS, "-s"]).arg(format!("unix:{}", socket.display()));
        let mut fcgiwrap = Process::start(&mut command, &dir.join("fcgiwrap.log"))?;
        wait_for(&mut fcgiwrap, "fcgiwrap", || socket.exists())?;
        let address = free_address()?;
        let config = dir.join("nginx.conf");
        let text = nginx_config(dir, &address, &backend, client.home());
        std::fs::write(&config, text).map_err(io("write a configuration"))?;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(dir).arg("-c").arg(&config).arg("-e").arg(dir.join("error.log"));
        let mut nginx = Process::start(&mut command, &dir.join("nginx.log"))?;
        wait_for(&mut nginx, "nginx", || TcpStream::connect(&address).is_ok())?;
        Ok(Self { repos, address, _nginx: nginx, _fcgiwrap: fcgiwrap })
    }

    /// An empty repository.
    pub(crate) fn create(&self, client: &Client, name: &str) -> Result<Remote, Failure> {
        let dir = self.path(name);
        std::fs::create_dir_all(&dir).map_err(io("make a repository"))?;
        client.text(&dir, &["init", "-q", "--bare", "--template=", "-b", "main", "."])?;
        // Automatic maintenance is off, because it would run during the measurement; on our side it is a separate job.
        let settings =
            [("core.fsync", FSYNC), ("http.receivepack", "true"), ("receive.autogc", "false"), ("gc.auto", "0")];
        for (key, value) in settings {
            client.text(&dir, &["config", key, value])?;
        }
        Ok(Remote { url: format!("http://{}/{name}.git", self.address), settings: Vec::new() })
    }

    /// A repository with the objects and refs of another one.
    pub(crate) fn copy(&self, client: &Client, name: &str, from: &Path) -> Result<Remote, Failure> {
        let remote = self.create(client, name)?;
        data::copy_repository(from, &self.path(name)).map_err(io("copy a repository"))?;
        Ok(remote)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.repos.join(format!("{name}.git"))
    }
}

fn wait_for(process: &mut Process, name: &str, ready: impl Fn() -> bool) -> Result<(), Failure> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE && !process.has_ended() {
        if ready() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::failed(format!("{name} did not start: {}", process.last_words())))
}

/// nginx does not report the port it got, so it is given a free one.
fn free_address() -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(io("find a free port"))?;
    Ok(listener.local_addr().map_err(io("find a free port"))?.to_string())
}

/// nginx buffers neither requests nor responses, and uses no files outside `dir`.
fn nginx_config(dir: &Path, address: &str, backend: &Path, home: &Path) -> String {
    // Started as root, nginx would run its workers as another user.
    let user = if rustix::process::getuid().is_root() { "user root;" } else { "" };
    let (dir, backend, home) = (dir.display(), backend.display(), home.display());
    format!(
        r#"{user}
daemon off;
worker_processes auto;
pid "{dir}/nginx.pid";
error_log "{dir}/error.log";
events {{ worker_connections 256; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 60;
    client_max_body_size 0;
    client_body_temp_path "{dir}/client";
    proxy_temp_path "{dir}/proxy";
    fastcgi_temp_path "{dir}/fastcgi";
    uwsgi_temp_path "{dir}/uwsgi";
    scgi_temp_path "{dir}/scgi";
    server {{
        listen {address};
        location / {{
            fastcgi_pass "unix:{dir}/fcgi";
            fastcgi_request_buffering off;
            fastcgi_buffering off;
            fastcgi_buffer_size 64k;
            fastcgi_buffers 16 64k;
            fastcgi_busy_buffers_size 128k;
            fastcgi_read_timeout 1h;
            fastcgi_send_timeout 1h;
            fastcgi_param SCRIPT_FILENAME "{backend}";
            fastcgi_param GIT_PROJECT_ROOT "{dir}/repos";
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param GIT_PROTOCOL $http_git_protocol if_not_empty;
            fastcgi_param GIT_CONFIG_NOSYSTEM 1;
            fastcgi_param GIT_CONFIG_GLOBAL /dev/null;
            fastcgi_param HOME "{home}";
            fastcgi_param REMOTE_USER bench;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param PATH_INFO $document_uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length if_not_empty;
        }}
    }}
}}
"#
    )
}
