//! The client's part of a push, from well-formed to hostile.

use abide_core::Oid;
use abide_git::pktline::{put_data, put_flush};
use abide_git::receive::{BadRequest, parse_request, read_request};
use abide_git::{PacketReader, PushRequest, ReceiveError, ReceiveLimits};
use bytes::BytesMut;
use proptest::prelude::*;
use std::time::Duration;
use tokio::io::AsyncReadExt;

const A: &str = "1111111111111111111111111111111111111111";
const Z: &str = "0000000000000000000000000000000000000000";

fn wire(lines: &[&str]) -> BytesMut {
    let mut wire = BytesMut::new();
    for line in lines {
        match *line {
            "" => put_flush(&mut wire),
            line => put_data(&mut wire, line.as_bytes()),
        }
    }
    wire
}

fn parse(lines: &[&str]) -> Result<Option<PushRequest>, ReceiveError> {
    parse_request(&wire(lines), &ReceiveLimits::default()).map(|(request, _)| request)
}

#[tokio::test]
async fn a_push_is_read_up_to_its_pack() {
    let mut bytes = wire(&[
        &format!("shallow {A}"),
        &format!(
            "{Z} {A} refs/heads/a\0 report-status-v2 side-band-64k atomic quiet push-options object-format=sha1 agent=git/2.47.3-Linux later-word"
        ),
        &format!("{A} {Z} refs/heads/b\n"),
        "",
        "ci.skip",
        "title=a b",
        "",
    ]);
    bytes.extend_from_slice(b"PACK");
    let mut reader = PacketReader::new(&bytes[..]);
    let request = read_request(&mut reader, &ReceiveLimits::default()).await.unwrap().unwrap();
    assert_eq!(request.updates.len(), 2);
    assert!(request.updates[0].is_create() && request.updates[1].is_delete() && request.needs_pack());
    assert_eq!(request.updates[1].name.as_str(), "refs/heads/b");
    assert_eq!(request.push_options, ["ci.skip", "title=a b"]);
    assert_eq!(request.shallow, [A.parse::<Oid>().unwrap()]);
    let client = &request.capabilities;
    assert!(client.report_status_v2 && client.side_band_64k && client.atomic && client.quiet);
    assert!(!client.report_status);
    assert_eq!(client.agent.as_deref(), Some("git/2.47.3-Linux"));
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"PACK");
}

#[tokio::test]
async fn a_probe_or_an_empty_stream_asks_for_nothing() {
    let limits = ReceiveLimits::default();
    assert_eq!(read_request(&mut PacketReader::new(&b"0000"[..]), &limits).await.unwrap(), None);
    assert_eq!(read_request(&mut PacketReader::new(&b""[..]), &limits).await.unwrap(), None);
    let cut = wire(&[&format!("{Z} {A} refs/heads/a")]);
    let result = read_request(&mut PacketReader::new(&cut[..]), &limits).await;
    assert!(matches!(result, Err(BadRequest { error: ReceiveError::Truncated, .. })), "{result:?}");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_given_up() {
    let (_client, ours) = tokio::io::duplex(64);
    let limits = ReceiveLimits { idle: Duration::from_millis(20), ..ReceiveLimits::default() };
    let result = read_request(&mut PacketReader::new(ours), &limits).await;
    assert!(matches!(result, Err(BadRequest { error: ReceiveError::Idle(_), .. })), "{result:?}");
}

#[test]
fn deleting_only_needs_no_pack() {
    assert!(!parse(&[&format!("{A} {Z} refs/heads/b"), ""]).unwrap().unwrap().needs_pack());
}

#[test]
fn refusals_say_which_rule() {
    let refusal = |lines: &[&str]| parse(lines).unwrap_err().to_string();
    let bad_name = refusal(&[&format!("{Z} {A} refs/heads/a..b"), ""]);
    assert!(bad_name.contains("refs/heads/a..b") && bad_name.contains("not contain .."), "{bad_name}");
    assert!(refusal(&[&format!("{Z} {} refs/heads/a", "g".repeat(40)), ""]).contains("<old id> <new id> <ref>"));
    assert!(refusal(&["nonsense", ""]).contains("nonsense"));
    assert!(refusal(&[&format!("{Z} {A} refs/heads/a\0object-format=sha256"), ""]).contains("SHA-1"));
    assert!(refusal(&[&format!("{Z} {A} refs/heads/a\0push-cert=x"), ""]).contains("--signed"));
    assert!(refusal(&["push-cert\0 report-status", ""]).contains("--signed"));
    let control = refusal(&[&format!("{Z} {A} refs/heads/\u{1b}[31m"), ""]);
    assert!(!control.contains('\u{1b}'), "{control}");
}

#[test]
fn counts_and_sizes_are_bounded() {
    let limits = ReceiveLimits { commands: 2, command_bytes: 500, options: 1, option_bytes: 10, ..Default::default() };
    let of = |lines: &[&str]| parse_request(&wire(lines), &limits).map(drop);
    let command = |name: &str| format!("{Z} {A} refs/heads/{name}\0push-options");
    let (a, b, c) = (command("a"), command("b"), command("c"));
    of(&[&a, &b, "", "0123456789", ""]).unwrap();
    assert!(matches!(of(&[&a, &b, &c, "", ""]), Err(ReceiveError::TooManyCommands(2))));
    assert!(matches!(
        of(&[&command(&"x".repeat(200)), &command(&"y".repeat(200)), "", ""]),
        Err(ReceiveError::CommandsTooLong(500))
    ));
    assert!(matches!(of(&[&a, "", "0123456789a", ""]), Err(ReceiveError::PushOptions { .. })));
    assert!(matches!(of(&[&a, "", "1", "2", ""]), Err(ReceiveError::PushOptions { .. })));
    assert!(matches!(of(&[&a, "", "a\nb", ""]), Err(ReceiveError::PushOptions { .. })));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = parse_request(&bytes, &ReceiveLimits::default());
    }

    #[test]
    fn arbitrary_packets_never_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                Just(String::new()),
                Just(format!("{Z} {A} refs/heads/a\0push-options")),
                "(shallow )?[0a]{39,41} [0a]{40} ?(refs/)?[a-z./\u{0}]{0,9}",
                ".{0,60}",
            ],
            0..6,
        ),
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let bytes = wire(&lines);
        if let Ok((_, taken)) = parse_request(&bytes, &ReceiveLimits::default()) {
            prop_assert!(taken <= bytes.len());
        }
    }
}
