//! Servers to fetch from: git's own upload-pack, and scripts of answers.

use crate::support::{Work, plain_git};
use abide_core::Oid;
use abide_git::ProtocolVersion;
use abide_git::fetch::{Answering, Body, FetchError, PackReader, Remote, RemoteError, RemoteRequest, Reply, Source};
use abide_git::pktline::{put_data, put_delim, put_flush};
use bytes::BytesMut;
use std::io::{self, Cursor, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, ReadBuf};

/// Smart HTTP of git itself, without HTTP.
pub struct Upstream {
    repo: PathBuf,
    /// Newest version that the server speaks.
    pub newest: ProtocolVersion,
    config: &'static [&'static str],
    up: AtomicUsize,
    down: AtomicUsize,
}

impl Upstream {
    pub fn of(work: &Work) -> Self {
        let counter = AtomicUsize::default;
        let repo = work.path().join(".git");
        Self { repo, newest: ProtocolVersion::V2, config: &[], up: counter(), down: counter() }
    }

    pub fn old(work: &Work, config: &'static [&'static str]) -> Self {
        Self { newest: ProtocolVersion::V0, config, ..Self::of(work) }
    }

    /// Answer of git to a request, whether or not git reports an error in it.
    fn run(&self, request: &RemoteRequest) -> Vec<u8> {
        let version = request.protocol().min(self.newest);
        let mut command = plain_git(&self.repo);
        command.args(self.config.iter().flat_map(|setting| ["-c", setting])).args(["upload-pack", "--stateless-rpc"]);
        if let Some(version) = version.as_env() {
            command.env("GIT_PROTOCOL", version);
        }
        if request.body().is_none() {
            command.arg("--http-backend-info-refs");
        }
        let pipes = command.arg(".").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(request.body().map_or(b"", |body| body)).unwrap();
        let answer = child.wait_with_output().unwrap().stdout;
        let has_service = request.body().is_none() && version != ProtocolVersion::V2;
        let service = if has_service { &b"001e# service=git-upload-pack\n0000"[..] } else { b"" };
        [service, &answer].concat()
    }

    /// Bytes of requests and answers since the last call.
    pub fn traffic(&self) -> (usize, usize) {
        (self.up.swap(0, Ordering::SeqCst), self.down.swap(0, Ordering::SeqCst))
    }
}

impl Remote for Upstream {
    fn ask(&self, request: RemoteRequest) -> Answering<'_> {
        let answer = self.run(&request);
        self.up.fetch_add(request.body().map_or(0, |body| body.len()), Ordering::SeqCst);
        self.down.fetch_add(answer.len(), Ordering::SeqCst);
        let reply = smart(&request, Box::new(Cursor::new(answer)));
        Box::pin(async move { Ok(reply) })
    }
}

pub fn smart(request: &RemoteRequest, body: Body) -> Reply {
    let content_type = match request.body() {
        None => "application/x-git-upload-pack-advertisement",
        Some(_) => "application/x-git-upload-pack-result",
    };
    Reply { status: 200, content_type: Some(content_type.into()), retry_after: None, body }
}

/// A server that gives these answers, one after another.
pub struct Script(pub Mutex<Vec<Result<Body, RemoteError>>>);

impl Script {
    pub fn new(answers: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::streams(answers.into_iter().map(|answer| Box::new(Cursor::new(answer)) as Body))
    }

    pub fn streams(answers: impl IntoIterator<Item = Body>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().map(Ok).collect();
        answers.reverse();
        Self(Mutex::new(answers))
    }
}

impl Remote for Script {
    fn ask(&self, request: RemoteRequest) -> Answering<'_> {
        let answer = self.0.lock().unwrap().pop().expect("the script has an answer");
        Box::pin(async move { answer.map(|body| smart(&request, body)) })
    }
}

/// A body that repeats bytes without end.
pub struct Endless(pub &'static [u8], pub usize);

impl tokio::io::AsyncRead for Endless {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        while out.remaining() > 0 {
            let (bytes, at) = (self.0, self.1);
            out.put_slice(&bytes[at..=at]);
            self.1 = (at + 1) % bytes.len();
        }
        std::task::Poll::Ready(Ok(()))
    }
}

/// A body that begins with these bytes and then goes on as another.
pub fn then(first: Vec<u8>, rest: impl tokio::io::AsyncRead + Send + Unpin + 'static) -> Body {
    Box::new(Cursor::new(first).chain(rest))
}

pub struct Silent;

impl tokio::io::AsyncRead for Silent {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no data for 30 s")))
    }
}

/// Lines as packets; an empty line is a flush.
pub fn wire(lines: &[&str]) -> Vec<u8> {
    let mut out = BytesMut::new();
    for line in lines {
        match *line {
            "" => put_flush(&mut out),
            "|" => put_delim(&mut out),
            line => put_data(&mut out, line.as_bytes()),
        }
    }
    out.to_vec()
}

pub fn v2() -> Vec<u8> {
    wire(&["version 2\n", "agent=git/2\n", "ls-refs\n", "fetch=shallow wait-for-done\n", "object-format=sha1\n", ""])
}

/// A server that answers the advertisement well and a fetch with these bytes.
pub fn answering(fetch: Vec<u8>) -> Script {
    Script::new([v2(), fetch])
}

pub async fn fetched(remote: &dyn Remote, wants: &[Oid], haves: &[Oid]) -> Result<PackReader, FetchError> {
    Source::discover(remote).await?.pack(wants, haves).await
}

pub fn absent() -> Oid {
    "1111111111111111111111111111111111111111".parse().unwrap()
}
