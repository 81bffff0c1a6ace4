//! `abide bench git`
//!
//! Everything lives in one temporary directory: a private server of this same binary (`common/server.rs`), a private nginx with
//! fcgiwrap around `git http-backend` (`reference.rs`), and the real `git` as client (`common/client.rs`) on generated
//! repositories (`common/data.rs`). A file per case. `signed.rs`: the same for repositories that a nostr key owns.

mod clone;
mod compare;
mod footprint;
mod large;
mod ls_remote;
mod reference;
mod signed;
mod small_push;
mod ssh;

use super::common::{client, data, memory, process, server};
use super::report::Report;
use super::{Stop, io, temporary};
use crate::{Failure, Machine, Output};
use client::{Client, Remote};
use reference::Reference;
use server::{Repo, Server};
use signed::Signer;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Case {
    /// One commit with one small file onto an existing branch.
    SmallPush,
    /// 50 MB in 10,000 commits.
    Clone,
    /// 1,000 and 50,000 refs.
    LsRemote,
    /// 1 GiB pushed and cloned, with the memory of the server.
    Large,
    /// Cold start, idle memory, size of the binary.
    Footprint,
}

#[derive(clap::Args)]
pub struct Args {
    /// Only these cases, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASE")]
    only: Vec<Case>,
    /// Rounds of the quick cases on each side; slow cases run fewer rounds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Size of the push and clone in the large case.
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    large_size: u32,
    /// Use repositories of a nostr key, with signed states, instead of repositories of an account.
    #[arg(long)]
    signed: bool,
    /// Parent of the temporary directory: use a disk like the one for the repositories.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Binary of the server to measure [default: this one].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let git = machine.git.clone();
    // Sequential processes and files: async code has no advantage here.
    let measured =
        tokio::task::spawn_blocking(move || measure(&args, &git, stop).map(|report| report.output(args.json)));
    measured.await.map_err(|error| Failure::failed(format!("the benchmark ended early: {error}")))?
}

/// Context of every case.
struct Bench {
    root: PathBuf,
    client: Client,
    server: Server,
    /// Signer of states, for repositories of a nostr key.
    signer: Option<Signer>,
    /// `None` if this machine lacks nginx or fcgiwrap.
    reference: Option<Reference>,
    rounds: usize,
    stop: Stop,
}

impl Bench {
    /// Creates the directory of a case.
    fn room(&self, name: &str) -> Result<PathBuf, Failure> {
        let room = self.root.join(name);
        std::fs::create_dir_all(&room).map_err(io("make a directory"))?;
        Ok(room)
    }

    /// Creates a repository on our side.
    fn create(&self, name: &str) -> Result<Repo, Failure> {
        match &self.signer {
            Some(signer) => signer.create(&self.client, &self.server, &self.root, name),
            None => self.server.create(name),
        }
    }

    /// Remote of a repository on our side.
    fn ours(&self, repo: &Repo) -> Remote {
        match &self.signer {
            Some(signer) => signer.remote(&self.server, repo.name()),
            None => self.server.http(repo),
        }
    }

    /// Publishes a state with these refs, if the repository needs one.
    fn allow(&self, remote: &Remote, refs: &[(&str, &str)]) -> Result<(), Failure> {
        self.signer.as_ref().map_or(Ok(()), |signer| signer.allow(remote, refs))
    }

    /// Pushes all refs of a repository.
    fn push_all(&self, source: &Path, remote: &Remote) -> Result<Duration, Failure> {
        let listed = self.client.text(source, &["for-each-ref", "--format=%(refname) %(objectname)"])?;
        self.allow(remote, &listed.lines().filter_map(|line| line.split_once(' ')).collect::<Vec<_>>())?;
        self.client.push_all(source, remote)
    }

    /// Fewer rounds for a slower case, but enough for a median.
    fn rounds_over(&self, divisor: usize) -> usize {
        (self.rounds / divisor).max(3).min(self.rounds)
    }
}

fn measure(args: &Args, git: &str, stop: Stop) -> Result<Report, Failure> {
    let wanted = |case| args.only.is_empty() || args.only.contains(&case);
    let root = temporary(args.temp.as_deref())?;
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize().map_err(io("find the binary"))?,
        None => std::env::current_exe().map_err(io("find this binary"))?,
    };
    let mut report = Report::default();
    let client = Client::new(git, root.path(), stop.clone())?;
    report.note(format!("{}; the client is that git too", client.version()?));
    if wanted(Case::Footprint) {
        footprint::measure(&binary, root.path(), &stop, &mut report)?;
    }
    if [Case::SmallPush, Case::Clone, Case::LsRemote, Case::Large].into_iter().any(wanted) {
        let bench = begin(args, &binary, root.path(), client, stop, &mut report)?;
        if wanted(Case::SmallPush) {
            small_push::measure(&bench, &mut report)?;
        }
        if wanted(Case::LsRemote) {
            ls_remote::measure(&bench, &mut report)?;
        }
        if wanted(Case::Clone) {
            clone::measure(&bench, &mut report)?;
        }
        if wanted(Case::Large) {
            large::measure(&bench, u64::from(args.large_size), &mut report)?;
        }
        if let Some(signer) = bench.signer {
            signer.report_to(&mut report);
        }
    }
    Ok(report)
}

fn begin(
    args: &Args,
    binary: &Path,
    root: &Path,
    client: Client,
    stop: Stop,
    report: &mut Report,
) -> Result<Bench, Failure> {
    let server = Server::start(binary, &root.join("data"))?.0.with_account()?;
    let signer = args.signed.then(|| Signer::new(&server)).transpose()?;
    let reference = match Reference::start(&client, &root.join("reference")) {
        Ok(reference) => Some(reference),
        Err(reference::Absent::Missing(packages)) => {
            report.note(format!("no reference and no ratios: apt-get install {packages}"));
            None
        }
        Err(reference::Absent::Failed(failure)) => return Err(failure),
    };
    if reference.is_some() {
        report.note("reference: git http-backend behind nginx and fcgiwrap, nothing buffered, the same core.fsync");
        let (checked, trips) = match &signer {
            Some(_) => ("a signed state", "the state is published before the clock starts"),
            None => {
                ("a token", "the token comes as http.extraHeader, so both sides take the same number of round trips")
            }
        };
        report.note(format!(
            "our side checks {checked} and the pushed objects (fsck) each time; the reference does neither"
        ));
        report.note(trips);
    }
    report.note("times are medians of the whole git command; sides run in turn");
    Ok(Bench { root: root.to_owned(), client, server, signer, reference, rounds: args.rounds.into(), stop })
}

/// Prints progress, which is not part of the result.
fn say(what: &str) {
    eprintln!("{what} …");
}
