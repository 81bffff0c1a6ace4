//! Fetching from another server: against git's own upload-pack, and against hostile answers.

use crate::support::{Server, Work, plain_git, update};
use abide_core::Oid;
use abide_git::fetch::{
    Answering, Body, FetchClass, FetchError, Offer, PackReader, Presence, Remote, RemoteError, RemoteRequest, Reply,
    Source,
};
use abide_git::pktline::{BAND_DATA, put_data, put_delim, put_flush, put_sideband};
use abide_git::{PackOutcome, ProtocolVersion, ReceiveError, ReceiveLimits};
use bytes::BytesMut;
use std::io::{self, Cursor, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, ReadBuf};

/// Smart HTTP of git itself, without HTTP.
struct Upstream {
    repo: PathBuf,
    /// Newest version that the server speaks.
    newest: ProtocolVersion,
    config: &'static [&'static str],
    up: AtomicUsize,
    down: AtomicUsize,
}

impl Upstream {
    fn of(work: &Work) -> Self {
        let counter = AtomicUsize::default;
        let repo = work.path().join(".git");
        Self { repo, newest: ProtocolVersion::V2, config: &[], up: counter(), down: counter() }
    }

    fn old(work: &Work, config: &'static [&'static str]) -> Self {
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
    fn traffic(&self) -> (usize, usize) {
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

fn smart(request: &RemoteRequest, body: Body) -> Reply {
    let content_type = match request.body() {
        None => "application/x-git-upload-pack-advertisement",
        Some(_) => "application/x-git-upload-pack-result",
    };
    Reply { status: 200, content_type: Some(content_type.into()), retry_after: None, body }
}

/// A server that gives these answers, one after another.
struct Script(Mutex<Vec<Result<Body, RemoteError>>>);

impl Script {
    fn new(answers: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::streams(answers.into_iter().map(|answer| Box::new(Cursor::new(answer)) as Body))
    }

    fn streams(answers: impl IntoIterator<Item = Body>) -> Self {
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
struct Endless(&'static [u8], usize);

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
fn then(first: Vec<u8>, rest: impl tokio::io::AsyncRead + Send + Unpin + 'static) -> Body {
    Box::new(Cursor::new(first).chain(rest))
}

struct Silent;

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
fn wire(lines: &[&str]) -> Vec<u8> {
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

fn v2() -> Vec<u8> {
    wire(&["version 2\n", "agent=git/2\n", "ls-refs\n", "fetch=shallow wait-for-done\n", "object-format=sha1\n", ""])
}

/// A server that answers the advertisement well and a fetch with these bytes.
fn answering(fetch: Vec<u8>) -> Script {
    Script::new([v2(), fetch])
}

async fn fetched(remote: &dyn Remote, wants: &[Oid], haves: &[Oid]) -> Result<PackReader, FetchError> {
    Source::discover(remote).await?.pack(wants, haves).await
}

/// Fetches one object into an area of the server, which must connect it.
async fn arrives(server: &Server, remote: &dyn Remote, want: Oid, haves: &[Oid]) -> PackOutcome {
    let pack = fetched(remote, &[want], haves).await.unwrap();
    let incoming = server.incoming("fetched").await;
    let outcome = incoming.receive(pack, &ReceiveLimits::default(), None).await.unwrap();
    let connected = server.connected(incoming, &[update("refs/heads/fetched", Oid::ZERO, want)]).await;
    connected.migrate(&server.repo).await.unwrap();
    assert_eq!(server.run(&["cat-file", "-t", &want.to_string()]), "commit");
    server.fsck();
    outcome
}

/// A repository whose branch `main` is one commit behind the returned commit, which no ref reaches.
fn with_unadvertised() -> (Work, Oid, Oid) {
    let work = Work::new();
    let one = work.commit("one");
    let two = work.commit("two");
    work.run(&["update-ref", "refs/heads/main", &one.to_string()]);
    (work, one, two)
}

fn absent() -> Oid {
    "1111111111111111111111111111111111111111".parse().unwrap()
}

#[tokio::test]
async fn an_object_that_no_ref_reaches_is_fetched_by_its_id() {
    let ((work, _, two), server) = (with_unadvertised(), Server::new().await);
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    assert!(matches!(source.offer(), Offer::V2(offer) if offer.wait_for_done && offer.ls_refs), "{:?}", source.offer());
    let outcome = arrives(&server, &upstream, two, &[]).await;
    assert_eq!((outcome.objects, outcome.kept_as_pack), (6, false));
}

#[tokio::test]
async fn a_large_pack_arrives_whole() {
    let (work, server) = (Work::new(), Server::new().await);
    let tip = work.commits(3000);
    let outcome = arrives(&server, &Upstream::of(&work), tip, &[]).await;
    assert!(outcome.kept_as_pack && outcome.objects > 6000, "{outcome:?}");
}

#[tokio::test]
async fn a_thin_pack_is_completed_from_the_repository() {
    for old in [false, true] {
        let (work, server) = (Work::new(), Server::new().await);
        let long: String = (0..3000).map(|line| format!("line {line}\n")).collect();
        let one = work.commit(&long);
        work.push_to(&server);
        let two = work.commit(&(long + "and one more\n"));
        let upstream = if old { Upstream::old(&work, &[]) } else { Upstream::of(&work) };
        // The first have is not known there, and more than the limit are not named.
        let haves = [vec![absent(), one], vec![absent(); 1000]].concat();
        let outcome = arrives(&server, &upstream, two, &haves).await;
        assert!(outcome.bytes < 1500, "the pack is thin: {outcome:?}");
        let (up, _) = upstream.traffic();
        assert!(up < 50 * 260, "{up}");
    }
}

#[tokio::test]
async fn a_missing_object_is_named_and_the_others_are_fetched_without_it() {
    let ((work, one, two), server) = (with_unadvertised(), Server::new().await);
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let mut wants = vec![two, absent(), one];
    let refused = source.pack(&wants, &[]).await.unwrap_err();
    assert_eq!(refused, FetchError::NotOurRef(absent()));
    assert_eq!(refused.class(), FetchClass::NotOurRef);
    wants.retain(|oid| *oid != absent());
    let pack = source.pack(&wants, &[]).await.unwrap();
    let incoming = server.incoming("rest").await;
    assert_eq!(incoming.receive(pack, &ReceiveLimits::default(), None).await.unwrap().objects, 6);
}

#[tokio::test]
async fn a_probe_costs_few_bytes_and_tells_presence_from_absence() {
    let (work, one, two) = with_unadvertised();
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let (_, discovered) = upstream.traffic();
    for (oid, presence) in [(one, Presence::Has), (two, Presence::Has), (absent(), Presence::Lacks)] {
        assert_eq!(source.probe(&[oid]).await.unwrap().0, [(oid, presence)]);
        let (up, down) = upstream.traffic();
        assert!(up <= 150 && down + discovered <= 300, "{up} up, {discovered} + {down} down");
    }
    // git does not acknowledge the parent of an acknowledged commit, which says nothing about absence.
    let all = [two, absent(), one];
    let probe = source.probe(&all).await.unwrap();
    let presence = [Presence::Has, Presence::Lacks, Presence::Has];
    assert_eq!(probe.0, std::array::from_fn::<_, 3, _>(|i| (all[i], presence[i])));
    // More than one request takes.
    let many: Vec<Oid> =
        (0..600u32).map(|n| Oid::from_bytes(std::array::from_fn(|_| n as u8 | 1))).chain(all).collect();
    let probe = source.probe(&many).await.unwrap();
    assert_eq!(probe.0.len(), many.len());
    assert_eq!(probe.worth_fetching(), [two, one]);
}

#[tokio::test]
async fn a_probe_for_a_long_history_leaves_open_what_the_server_does_not_say() {
    let work = Work::new();
    work.commits(30);
    let history: Vec<Oid> = work.run(&["rev-list", "main"]).lines().map(|oid| oid.parse().unwrap()).collect();
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let probe = source.probe(&history).await.unwrap();
    assert_eq!((probe.0[0], probe.worth_fetching()), ((history[0], Presence::Has), history));
}

#[tokio::test]
async fn a_server_without_wait_for_done_knows_the_objects_of_its_refs_and_says_nothing_of_others() {
    let (work, one, two) = with_unadvertised();
    let tag = {
        work.run(&["tag", "-a", "-m", "tag", "v1", &two.to_string()]);
        work.oid("refs/tags/v1")
    };
    let expected = [(one, Presence::Has), (tag, Presence::Has), (two, Presence::Has), (absent(), Presence::Unknown)];
    let oids = expected.map(|(oid, _)| oid);
    // git's own list of refs behind an advertisement without the capability.
    let list = format!("{one} HEAD symref-target:refs/heads/main");
    let tagged = format!("{tag} refs/tags/v1 peeled:{two}");
    let unborn = "unborn HEAD symref-target:refs/heads/x";
    let advertised = wire(&["version 2", "ls-refs", "fetch=shallow", ""]);
    let server = Script::new([advertised, wire(&[unborn, &list, &tagged, ""])]);
    assert_eq!(Source::discover(&server).await.unwrap().probe(&oids).await.unwrap().0, expected);

    let old = Upstream::old(&work, &[]);
    let probe = Source::discover(&old).await.unwrap().probe(&oids).await.unwrap();
    assert_eq!(probe.0, expected);
    assert_eq!(probe.worth_fetching(), oids);
}

#[tokio::test]
async fn a_long_list_of_refs_is_left_unread_and_says_nothing() {
    let advertised = wire(&["version 2", "ls-refs", "fetch", ""]);
    let endless = Endless(b"003d1111111111111111111111111111111111111111 refs/heads/main\n", 0);
    let server = Script::streams([Box::new(Cursor::new(advertised.clone())) as Body, Box::new(endless)]);
    let oid = Oid::from_bytes([2; 20]);
    let probe = Source::discover(&server).await.unwrap().probe(&[oid]).await.unwrap();
    assert_eq!(probe.0, [(oid, Presence::Unknown)]);
    // Reading ends with the last object found.
    let first = wire(&["1111111111111111111111111111111111111111 refs/heads/main"]);
    let server = Script::streams([Box::new(Cursor::new(advertised)) as Body, then(first, Endless(b"0005x", 0))]);
    let probe = Source::discover(&server).await.unwrap().probe(&[absent()]).await.unwrap();
    assert_eq!(probe.0, [(absent(), Presence::Has)]);
}

#[tokio::test]
async fn a_server_of_version_0_serves_its_refs_and_with_its_permission_other_objects() {
    let ((work, one, two), server) = (with_unadvertised(), Server::new().await);
    let strict = Upstream::old(&work, &[]);
    assert_eq!(arrives(&server, &strict, one, &[]).await.objects, 3);
    // Certain from the advertisement, so nothing is asked.
    strict.traffic();
    let refused = fetched(&strict, &[one, two], &[]).await.unwrap_err();
    assert_eq!((refused, strict.traffic().0), (FetchError::NotOurRef(two), 0));

    let open = Upstream::old(&work, &["uploadpack.allowAnySHA1InWant=true"]);
    assert_eq!(fetched(&open, &[one, absent()], &[]).await.unwrap_err(), FetchError::NotOurRef(absent()));
    assert_eq!(arrives(&server, &open, two, &[one]).await.objects, 3);
}

#[tokio::test]
async fn version_1_and_empty_repositories_are_understood() {
    let ((work, one, _), server) = (with_unadvertised(), Server::new().await);
    let middle = Upstream { newest: ProtocolVersion::V1, ..Upstream::of(&work) };
    arrives(&server, &middle, one, &[]).await;
    let empty = Work::new();
    for upstream in [Upstream::of(&empty), Upstream::old(&empty, &[])] {
        assert_eq!(fetched(&upstream, &[one], &[]).await.unwrap_err(), FetchError::NotOurRef(one));
    }
    // Some servers send no line at all for an empty repository.
    let nothing = Script::new([wire(&["# service=git-upload-pack\n", "", ""])]);
    assert_eq!(fetched(&nothing, &[one], &[]).await.unwrap_err(), FetchError::NotOurRef(one));
    // Others name the service in version 2, too.
    let named = Script::new([[wire(&["# service=git-upload-pack\n", ""]), v2()].concat()]);
    assert!(matches!(Source::discover(&named).await.unwrap().offer(), Offer::V2(_)));
}

#[tokio::test]
async fn a_shallow_clone_is_no_source() {
    let (work, copy) = (Work::new(), Work::new());
    let tip = work.commits(3);
    copy.run(&["fetch", "-q", "--depth=1", &format!("file://{}", work.path().display()), "main:copy"]);
    for upstream in [Upstream::of(&copy), Upstream::old(&copy, &[])] {
        assert_eq!(fetched(&upstream, &[tip], &[]).await.unwrap_err(), FetchError::Shallow);
    }
}

#[tokio::test]
async fn other_object_formats_and_missing_capabilities_are_refused_by_name() {
    let sha256 = "a".repeat(64);
    for (advertised, error) in [
        (wire(&["version 2", "fetch", "object-format=sha256", ""]), FetchError::ObjectFormat("sha256".into())),
        (
            wire(&[&format!("{sha256} HEAD\0side-band-64k object-format=sha256"), ""]),
            FetchError::ObjectFormat("sha256".into()),
        ),
        (
            wire(&["version 2", "ls-refs", ""]),
            FetchError::Protocol("the server does not offer the command fetch".into()),
        ),
        (
            wire(&[&format!("{} HEAD\0ofs-delta", absent()), ""]),
            FetchError::Protocol("the server does not offer side-band-64k; update its git".into()),
        ),
        (wire(&["ERR access denied\n"]), FetchError::Denied("access denied".into())),
        (wire(&[&format!("{} HEAD\0side-band-64k", Oid::from_bytes([2; 20])), ""]), FetchError::NotOurRef(absent())),
    ] {
        let server = Script::new([advertised]);
        assert_eq!(fetched(&server, &[absent()], &[]).await.unwrap_err(), error);
    }
}

#[tokio::test]
async fn an_endless_advertisement_is_given_up() {
    for endless in [
        &b"003d1111111111111111111111111111111111111111 refs/heads/main\n"[..],
        b"000eversion 1\n003d1111111111111111111111111111111111111111 refs/heads/main\n",
    ] {
        let first = wire(&["version 1\n"]);
        let error = fetched(&Script::streams([then(first, Endless(endless, 0))]), &[absent()], &[]).await.unwrap_err();
        assert!(matches!(error.class(), FetchClass::TooLarge | FetchClass::Protocol), "{error:?}");
    }
    // Capabilities that mean nothing, in packets of the full length.
    let mut padding = BytesMut::new();
    put_data(&mut padding, &[b'x'; 65_000]);
    let many = Script::new([[wire(&["version 2"]), padding.repeat(300)].concat()]);
    assert_eq!(fetched(&many, &[absent()], &[]).await.unwrap_err().class(), FetchClass::TooLarge);
}

#[tokio::test]
async fn no_answer_and_half_an_answer_are_told_apart() {
    let unreachable = Script(Mutex::new(vec![Err(RemoteError::Unreachable("cannot connect".into()))]));
    assert_eq!(fetched(&unreachable, &[absent()], &[]).await.unwrap_err().class(), FetchClass::Unreachable);
    let late = Script(Mutex::new(vec![Err(RemoteError::TimedOut(Duration::from_secs(10)))]));
    assert_eq!(fetched(&late, &[absent()], &[]).await.unwrap_err().class(), FetchClass::Idle);
    let busy = Script(Mutex::new(vec![Err(RemoteError::Busy)]));
    assert_eq!(fetched(&busy, &[absent()], &[]).await.unwrap_err().class(), FetchClass::Local);
    for cut in [&b""[..], b"000", b"000eversion 2\n", b"000eversion 2\n000dfe", b"0032"] {
        let error = fetched(&Script::new([cut.to_vec()]), &[absent()], &[]).await.unwrap_err();
        assert!(matches!(error, FetchError::Cut(_)), "{error:?}");
    }
    let silent = Script::streams([then(b"000eversion 2\n".to_vec(), Silent)]);
    let error = fetched(&silent, &[absent()], &[]).await.unwrap_err();
    assert_eq!(error, FetchError::Idle("no data for 30 s".into()));
}

#[tokio::test]
async fn the_answer_to_a_fetch_may_be_hostile() {
    let denied = |text: &str| FetchError::Denied(text.into());
    for (answer, error) in [
        (
            wire(&["ERR upload-pack: not our ref 1111111111111111111111111111111111111111"]),
            FetchError::NotOurRef(absent()),
        ),
        (wire(&["ERR upload-pack: not our ref"]), FetchError::NotOurRef(absent())),
        // Dropping an object that was not asked for would never end.
        (
            wire(&["ERR not our ref 2222222222222222222222222222222222222222"]),
            FetchError::Protocol(
                "the server refuses 2222222222222222222222222222222222222222, which was not asked for".into(),
            ),
        ),
        (wire(&["ERR \x1b[2Jgone"]), denied("\u{fffd}[2Jgone")),
        (wire(&["packfile", "\x03no space left\n"]), denied("no space left")),
        (wire(&["shallow-info", "shallow 1", "|"]), FetchError::Shallow),
        (wire(&["acknowledgments", "NAK", ""]), FetchError::Protocol("the answer ends without a pack".into())),
        (Vec::new(), FetchError::Cut("no pack follows".into())),
        (
            b"<html>".to_vec(),
            FetchError::Protocol("a packet must start with its length as four hexadecimal digits".into()),
        ),
    ] {
        assert_eq!(fetched(&answering(answer), &[absent()], &[]).await.unwrap_err(), error);
    }
    for packet in [&b"0005\x01"[..], b"0008\x02..."] {
        let server =
            Script::streams([Box::new(Cursor::new(v2())) as Body, then(wire(&["packfile\n"]), Endless(packet, 0))]);
        assert_eq!(fetched(&server, &[absent()], &[]).await.unwrap_err().class(), FetchClass::TooLarge);
    }
}

/// Receives a pack that must fail. Returns the error, and the failure that the reader keeps.
async fn fails(server: &Server, remote: &dyn Remote) -> (ReceiveError, Option<FetchError>) {
    let mut pack = fetched(remote, &[absent()], &[]).await.unwrap();
    let incoming = server.incoming("half").await;
    let received = incoming.receive(&mut pack, &ReceiveLimits::default(), None).await.unwrap_err();
    incoming.discard().await.unwrap();
    (received, pack.failure().cloned())
}

#[tokio::test]
async fn a_pack_that_breaks_off_fails_with_the_reason() {
    let (server, work) = (Server::new().await, Work::new());
    work.commit("one");
    let pack = work.pack(&["HEAD"]);
    let half = |end: &[u8]| {
        let mut out = BytesMut::from(&wire(&["packfile\n"])[..]);
        put_sideband(&mut out, BAND_DATA, &pack[..pack.len() / 2]);
        out.extend_from_slice(end);
        out.to_vec()
    };
    for (end, error) in [
        (&b""[..], FetchError::Cut("the pack has no end".into())),
        (b"0032\x01", FetchError::Cut("the pack has no end".into())),
        (b"0012\x03out of memory", FetchError::Denied("out of memory".into())),
    ] {
        let (received, failure) = fails(&server, &answering(half(end))).await;
        assert!(matches!(received, ReceiveError::Packet(_)), "{received:?}");
        assert!(received.to_string().contains(&error.to_string()), "{received}");
        assert_eq!(failure, Some(error));
    }
    // The server ends a pack that is not complete: the fault of the pack, not of the connection.
    let (received, failure) = fails(&server, &answering(half(b"0000"))).await;
    assert!(matches!((&received, failure), (ReceiveError::Truncated, None)), "{received:?}");

    let silent = Script::streams([Box::new(Cursor::new(v2())) as Body, then(half(b""), Silent)]);
    let (_, failure) = fails(&server, &silent).await;
    assert_eq!(failure.map(|error| error.class()), Some(FetchClass::Idle));
}

#[tokio::test]
async fn bytes_behind_a_pack_are_ignored() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commit("one");
    let pack = work.pack(&["HEAD"]);
    for (in_band, behind, stream_ends) in [(&b""[..], &b"0009\x01more"[..], false), (b"garbage", b"garbage", true)] {
        let mut out = BytesMut::from(&wire(&["packfile\n"])[..]);
        put_sideband(&mut out, BAND_DATA, &[&pack, in_band].concat());
        put_flush(&mut out);
        out.extend_from_slice(behind);
        let canned = answering(out.to_vec());
        let limits = ReceiveLimits { stream_ends, ..ReceiveLimits::default() };
        let incoming = server.incoming("behind").await;
        incoming.receive(fetched(&canned, &[tip], &[]).await.unwrap(), &limits, None).await.unwrap();
        let connected = server.connected(incoming, &[update("refs/heads/main", Oid::ZERO, tip)]).await;
        assert!(connected.covers(&server.repo, tip));
        connected.discard().await.unwrap();
    }
}

#[tokio::test]
async fn a_fetch_asks_for_one_to_256_objects() {
    let canned = Script::new([v2()]);
    let source = Source::discover(&canned).await.unwrap();
    for count in [0, 257] {
        let error = source.pack(&vec![absent(); count], &[]).await.unwrap_err();
        assert_eq!((error.clone(), error.class()), (FetchError::WantCount(count), FetchClass::Local));
    }
}
