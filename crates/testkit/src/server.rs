//! A real `abide serve` process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::poll::holds_within;
use crate::process;
use crate::{Engine, TestDatabase};

/// Password of every test account.
pub const PASSWORD: &str = "correct horse battery staple";

/// Time limit for a server to become ready.
const READY_DEADLINE: Duration = Duration::from_secs(30);
/// Time limit for a server to exit: longer than it waits for its clients.
const EXIT_DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of the log in a panic message.
const LOG_TAIL: usize = 8 * 1024;

/// Settings of a [`Server`].
#[derive(Debug)]
pub struct ServerBuilder {
    binary: PathBuf,
    database: TestDatabase,
    failpoint: Option<String>,
    env: Vec<(OsString, OsString)>,
    args: Vec<OsString>,
}

impl ServerBuilder {
    /// Sets an environment variable for the server and its command line.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Arms a failpoint for the server until [`Server::restart`].
    pub fn failpoint(mut self, name: &str) -> Self {
        self.failpoint = Some(name.to_owned());
        self
    }

    /// Adds an argument to `abide serve`.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Starts the server and waits until it is ready.
    ///
    /// # Panics
    /// If it exits or is not ready in time; the message has its log.
    pub fn start(self) -> Server {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server {
            settings: self,
            logs: tempfile::Builder::new().prefix("abide-logs-").tempdir().expect("a log directory can be made"),
            runs: 0,
            child: None,
            http_addr: any_port,
            ssh_addr: any_port,
            guests: Mutex::default(),
        };
        server.spawn();
        server
    }
}

/// A running `abide serve` with its own data directory and database. Killed on drop.
#[derive(Debug)]
pub struct Server {
    child: Option<Child>,
    settings: ServerBuilder,
    logs: TempDir,
    runs: usize,
    http_addr: SocketAddr,
    ssh_addr: SocketAddr,
    guests: Mutex<Vec<fn(&Path)>>,
}

impl Server {
    /// A server from this binary, `env!("CARGO_BIN_EXE_abide")`, on a fresh database.
    pub fn builder(binary: impl Into<PathBuf>, engine: Engine) -> ServerBuilder {
        Self::builder_on(binary, TestDatabase::new(engine))
    }

    /// A server from this binary on a database of its own.
    pub fn builder_on(binary: impl Into<PathBuf>, database: TestDatabase) -> ServerBuilder {
        ServerBuilder { binary: binary.into(), database, failpoint: None, env: Vec::new(), args: Vec::new() }
    }

    /// Its HTTP URL, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.http_addr)
    }

    /// URL of a repository for `git` over SSH: `ssh://git@ADDR/OWNER/NAME.git`.
    pub fn ssh_url(&self, owner: &str, name: &str) -> String {
        format!("ssh://git@{}/{owner}/{name}.git", self.ssh_addr)
    }

    /// URL of a repository for `git` over HTTP: `http://ADDR/OWNER/NAME.git`.
    pub fn http_url(&self, owner: &str, name: &str) -> String {
        format!("{}/{owner}/{name}.git", self.url())
    }

    /// Its HTTP listen address.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// Its SSH listen address.
    pub fn ssh_addr(&self) -> SocketAddr {
        self.ssh_addr
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        self.settings.database.data_dir()
    }

    /// Its database.
    pub fn database(&self) -> &TestDatabase {
        &self.settings.database
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it was stopped.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server was stopped").id()
    }

    /// Its resident memory in bytes.
    ///
    /// # Panics
    /// If it does not run, or this machine has no `/proc`.
    pub fn rss_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        resident_bytes(&status)
            .unwrap_or_else(|| panic!("{path} names no VmRSS: the server has ended\n{}", self.tail()))
    }

    /// CPU time of the server and of its finished child processes.
    ///
    /// # Panics
    /// If it does not run, or this machine has no `/proc`.
    pub fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.pid());
        let stat = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        processor_time(&stat).unwrap_or_else(|| panic!("{path} names no times: {stat}"))
    }

    /// Everything it has printed so far, in all its runs.
    pub fn log(&self) -> String {
        (1..=self.runs)
            .flat_map(|run| [self.stdout_path(run), self.stderr_path(run)])
            .map(|path| read_lossy(&path))
            .collect()
    }

    /// Registers a function that closes something the test keeps open on the same data directory. It runs before the
    /// test stops or restarts the server, so the server stops and starts as if it were alone.
    ///
    /// # Panics
    /// If another thread panicked in here.
    pub fn close_before_it_ends(&self, close: fn(&Path)) {
        self.guests.lock().expect("nobody panics with it").push(close);
    }

    fn close_what_is_open(&self) {
        let guests = std::mem::take(&mut *self.guests.lock().expect("nobody panics with it"));
        guests.iter().for_each(|close| close(self.data_dir()));
    }

    /// Kills it as a power cut would (SIGKILL). Does nothing if it has exited.
    pub fn kill(&mut self) {
        self.close_what_is_open();
        if let Some(mut child) = self.child.take() {
            child.kill().expect("our own child can be killed");
            child.wait().expect("our own child can be waited for");
        }
    }

    /// Asks it to stop (SIGTERM) and waits until it has.
    ///
    /// # Panics
    /// If it was stopped before or does not end in time.
    pub fn terminate(&mut self) -> ExitStatus {
        self.close_what_is_open();
        let child = self.child.as_ref().expect("the server was stopped");
        kill_process(Pid::from_child(child), Signal::TERM).expect("our own child can be signalled");
        self.wait_exit()
    }

    /// Waits until it exits by itself, as at a failpoint.
    ///
    /// # Panics
    /// If it was stopped before or does not exit in time.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the server was stopped");
        let mut status = None;
        let ended = holds_within(EXIT_DEADLINE, || {
            status = child.try_wait().expect("our own child can be waited for");
            status.is_some()
        });
        if !ended {
            self.child = Some(child);
            panic!("the server did not end within {EXIT_DEADLINE:?}\n{}", self.tail());
        }
        status.expect("it has ended")
    }

    /// Restarts it on the same addresses, data and database, without its failpoint. Kills it if it runs.
    ///
    /// # Panics
    /// Like [`ServerBuilder::start`].
    pub fn restart(&mut self) {
        self.start_again(None);
    }

    /// Restarts it like [`Server::restart`], with other settings, given as environment variables.
    ///
    /// # Panics
    /// Like [`ServerBuilder::start`].
    pub fn restart_with(&mut self, settings: &[(&str, &str)]) {
        self.settings.env.extend(settings.iter().map(|(name, value)| (name.into(), value.into())));
        self.restart();
    }

    /// Restarts it like [`Server::restart`], with a failpoint armed.
    ///
    /// # Panics
    /// Like [`ServerBuilder::start`].
    pub fn restart_with_failpoint(&mut self, name: &str) {
        self.start_again(Some(name.to_owned()));
    }

    fn start_again(&mut self, failpoint: Option<String>) {
        self.kill();
        self.settings.failpoint = failpoint;
        // Another process may hold the port meanwhile, but not for long.
        for addr in [self.http_addr, self.ssh_addr] {
            let free = holds_within(READY_DEADLINE, || TcpListener::bind(addr).is_ok());
            assert!(free, "{addr} is taken; the server cannot have it back");
        }
        self.spawn();
    }

    /// Runs `abide ARGS` on the same data and database, beside the server.
    pub fn cli(&self, args: &[&str]) -> Output {
        process::run(&mut self.command(args))
    }

    /// Like [`Server::cli`], with input on stdin.
    pub fn cli_stdin(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Output {
        let stdin = stdin.as_ref();
        process::run_with_input(&mut self.command(args), |input| input.write_all(stdin))
    }

    /// Like [`Server::cli`], for commands that must succeed; returns their output.
    ///
    /// # Panics
    /// If the command fails; the message has its output.
    #[track_caller]
    pub fn cli_ok(&self, args: &[&str]) -> String {
        process::expect_success(&format!("abide {}", args.join(" ")), self.cli(args))
    }

    /// The command `abide ARGS` on the same data and database, for a test that runs it itself.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.settings.binary);
        process::without_inherited(&mut command, "ABIDE_");
        command.env("ABIDE_TEST_CHEAP_PASSWORDS", "1");
        // Most tests announce with keys without an account.
        command.env("ABIDE_GRASP__ANNOUNCE", "open");
        // The free space of the machine's disk must not decide what a test sees.
        command.env("ABIDE_SERVER__STRANGER_FREE_PERCENT", "0");
        command.env("ABIDE_SERVER__MIN_FREE_PERCENT", "0");
        command.args(args).arg("--data").arg(self.data_dir());
        if let Some(url) = self.settings.database.url() {
            command.args(["--database", url]);
        }
        command.envs(self.settings.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the process on `self`'s addresses (port 0 at first) and waits for its ready line.
    fn spawn(&mut self) {
        assert!(self.child.is_none(), "the server already runs");
        self.runs += 1;
        let (http, ssh) = (self.http_addr.to_string(), self.ssh_addr.to_string());
        let mut command = self.command(&["serve", "--listen", &http, "--ssh-listen", &ssh]);
        command.args(&self.settings.args);
        if let Some(failpoint) = &self.settings.failpoint {
            command.env("ABIDE_FAILPOINT", failpoint);
        }
        // Files, not pipes: they never fill up, and they outlive the process.
        let stdout = self.stdout_path(self.runs);
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a log file can be made"))
            .stderr(File::create(self.stderr_path(self.runs)).expect("a log file can be made"))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
        self.child = Some(child);
        (self.http_addr, self.ssh_addr) = self.wait_ready(&stdout);
    }

    fn wait_ready(&mut self, stdout: &Path) -> (SocketAddr, SocketAddr) {
        let mut child = self.child.take().expect("it was just started");
        let mut ended = None;
        let mut ready = None;
        holds_within(READY_DEADLINE, || {
            // In this order, so that the last output of an exited process is still read.
            ended = child.try_wait().expect("our own child can be waited for");
            ready = find_ready_line(&read_lossy(stdout));
            ready.is_some() || ended.is_some()
        });
        self.child = Some(child);
        match (ready, ended) {
            (Some(addresses), _) => addresses,
            (None, Some(status)) => panic!("the server ended before it was ready: {status}\n{}", self.tail()),
            (None, None) => panic!("the server was not ready within {READY_DEADLINE:?}\n{}", self.tail()),
        }
    }

    fn stdout_path(&self, run: usize) -> PathBuf {
        self.logs.path().join(format!("{run}.stdout"))
    }

    fn stderr_path(&self, run: usize) -> PathBuf {
        self.logs.path().join(format!("{run}.stderr"))
    }

    /// The end of the log, for a panic message.
    fn tail(&self) -> String {
        let log = self.log();
        let start = log.len().saturating_sub(LOG_TAIL);
        let start = (start..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
        format!("--- end of its log\n{}", &log[start..])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("{}", self.tail());
        }
    }
}

fn read_lossy(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// HTTP and SSH addresses from the first complete ready line.
fn find_ready_line(stdout: &str) -> Option<(SocketAddr, SocketAddr)> {
    stdout.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).find_map(parse_ready_line)
}

/// Parses `Abide is ready at http://127.0.0.1:PORT (ssh 127.0.0.1:PORT)`.
fn parse_ready_line(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let addresses = line.strip_prefix("Abide is ready at http://")?.strip_suffix(')')?;
    let (http, ssh) = addresses.split_once(" (ssh ")?;
    Some((http.parse().ok()?, ssh.parse().ok()?))
}

/// `VmRSS` from `/proc/PID/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kibibytes.parse::<u64>().ok()? * 1024)
}

/// Sum of the four CPU times in `/proc/PID/stat`, in hundredths of a second: user and system time of the process and of
/// its children.
fn processor_time(stat: &str) -> Option<Duration> {
    // The process name before it may contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "Abide is ready at http://127.0.0.1:7464 (ssh 127.0.0.1:7465)";

    #[test]
    fn the_ready_line_names_both_addresses() {
        let (http, ssh) = parse_ready_line(READY).expect("this is the ready line");
        assert_eq!(http.to_string(), "127.0.0.1:7464");
        assert_eq!(ssh.to_string(), "127.0.0.1:7465");
    }

    #[test]
    fn processor_time_counts_ended_children_too() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 10 20 300 4000 20 0 3 0 5 6 7";
        assert_eq!(processor_time(stat), Some(Duration::from_millis(43_300)));
        assert_eq!(processor_time("7 (a) S 1"), None);
    }

    #[test]
    fn only_the_exact_ready_line_counts() {
        for other in [
            "",
            "Abide is ready at http://127.0.0.1:7464",
            "Abide is ready at http://localhost (ssh 127.0.0.1:7465)",
            "abide is ready at http://127.0.0.1:7464 (ssh 127.0.0.1:7465)",
            "Abide is ready at http://127.0.0.1:7464 (ssh 127.0.0.1:7465) soon",
        ] {
            assert_eq!(parse_ready_line(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_half_written_ready_line_is_not_ready() {
        let half = &READY[..READY.len() - 3];
        assert_eq!(find_ready_line(&format!("Starting\n{half}")), None);
        assert_eq!(find_ready_line(&format!("Starting\n{READY}")), None);
        assert!(find_ready_line(&format!("Starting\n{READY}\nmore")).is_some());
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        let status = "Name:\tabide\nVmHWM:\t   99 kB\nVmRSS:\t   12 kB\n";
        assert_eq!(resident_bytes(status), Some(12 * 1024));
        assert_eq!(resident_bytes("Name:\tzombie\n"), None);
    }
}
