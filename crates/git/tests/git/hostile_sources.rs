//! Fetching from another server that is broken or hostile.

use crate::source_support::{Endless, Script, Silent, absent, answering, fetched, then, v2, wire};
use crate::support::{Server, Work, update};
use abide_core::Oid;
use abide_git::fetch::{Body, FetchClass, FetchError, Presence, Remote, RemoteError, Source};
use abide_git::pktline::{BAND_DATA, put_data, put_flush, put_sideband};
use abide_git::{ReceiveError, ReceiveLimits};
use bytes::BytesMut;
use std::io::Cursor;
use std::sync::Mutex;
use std::time::Duration;

/// Receives a pack that must fail. Returns the error, and the failure that the reader keeps.
async fn fails(server: &Server, remote: &dyn Remote) -> (ReceiveError, Option<FetchError>) {
    let mut pack = fetched(remote, &[absent()], &[]).await.unwrap();
    let incoming = server.incoming("half").await;
    let received = incoming.receive(&mut pack, &ReceiveLimits::default(), None).await.unwrap_err();
    incoming.discard().await.unwrap();
    (received, pack.failure().cloned())
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
    let endless = Endless(b"003d1111111111111111111111111111111111111111 refs/heads/main\n", 0);
    let refs = Script::streams([then(wire(&["version 1\n"]), endless)]);
    let error = FetchError::TooLarge { what: "the number of refs", limit: 100_000 };
    assert_eq!(fetched(&refs, &[absent()], &[]).await.unwrap_err(), error);
    // Capabilities that mean nothing, in packets of the full length.
    let mut padding = BytesMut::new();
    put_data(&mut padding, &[b'x'; 65_000]);
    let many = Script::new([[wire(&["version 2"]), padding.repeat(300)].concat()]);
    let error = FetchError::TooLarge { what: "the advertisement", limit: 16 << 20 };
    assert_eq!(fetched(&many, &[absent()], &[]).await.unwrap_err(), error);
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
