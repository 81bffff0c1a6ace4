//! Mails are well-formed, have one recipient, and no header has a stranger's input.

use super::open_site;
use crate::rig::rig_with;
use abide_core::account::SignUpMode;
use abide_forge::By;
use abide_forge::jobs::{Kind, manage};
use abide_testkit::Engine;
use mail_parser::MessageParser;
use rstest::rstest;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_in_the_outbox_is_whole_and_well_formed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.mail.from = "Älice's Forge <forge@example.org>".into();
    })
    .await;
    rig.try_sign_up("alice", "o'neil+tag@sub.example.org", None).await.expect("signed up");
    rig.run_jobs().await;
    let outbox = rig.database.data_dir().join("outbox");
    let files: Vec<_> = fs::read_dir(&outbox).expect("there").map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(files.len(), 1, "no draft is left: {files:?}");
    let name = files[0].file_name().expect("named").to_string_lossy().into_owned();
    assert!(name.starts_with("20260101T000000Z-") && name.ends_with(".eml"), "{name}");
    assert_eq!(fs::metadata(&files[0]).expect("there").permissions().mode() & 0o777, 0o600);

    let bytes = fs::read(&files[0]).expect("readable");
    assert!(bytes.is_ascii(), "any mail server takes it");
    assert!(bytes.split(|byte| *byte == b'\n').all(|line| line.len() < 999), "no line is too long");
    let mail = MessageParser::default().parse(&bytes).expect("a mail");
    let from = mail.from().and_then(|from| from.first()).expect("a sender");
    assert_eq!((from.name(), from.address()), (Some("Älice's Forge"), Some("forge@example.org")));
    let to: Vec<_> = mail.to().expect("a recipient").iter().filter_map(|to| to.address()).collect();
    assert_eq!(to, ["o'neil+tag@sub.example.org"]);
    assert!(mail.cc().is_none() && mail.bcc().is_none());
    assert_eq!(mail.date().expect("a date").to_rfc3339(), "2026-01-01T00:00:00Z");
    let id = mail.message_id().expect("an id");
    assert!(id.ends_with("@example.org") && id.starts_with("abide-"), "{id}");
    assert_eq!(mail.subject(), Some("Verify your e-mail address"));
    assert!(mail.body_text(0).expect("a text").contains("/verify/"));
    assert_eq!(mail.parts.len(), 1, "text alone");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_queued_with_what_it_tells_about_or_not_at_all(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    rig.sign_up("alice").await;
    assert!(rig.try_sign_up("alice", "new@example.org", None).await.is_err());
    let waiting = manage::list(&rig.forge, &By::Operator, Some("waiting"), 10).await.expect("readable");
    assert_eq!(waiting.len(), 1, "what was refused sends nothing");
    let payload = &waiting[0].payload;
    assert!(!payload.contains("verify") && !payload.contains("alice"), "links are not shown with the jobs: {payload}");
    // Delivered twice, it is the same mail.
    rig.run_jobs().await;
    let outbox = rig.database.data_dir().join("outbox");
    let read = || {
        let entry = fs::read_dir(&outbox).expect("there").next().expect("a mail").expect("readable");
        fs::read(entry.path()).expect("readable")
    };
    let first = read();
    assert!(manage::retry(&rig.forge, &By::Operator, waiting[0].id).await.expect("writable"));
    rig.clock.advance(Duration::from_secs(60));
    rig.run_jobs().await;
    assert_eq!((fs::read_dir(&outbox).expect("there").count(), read() == first), (1, true));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_holds_no_mail_of_ours_fails_for_good(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    for payload in [json!({}), json!({ "sealed": "AAAA" }), json!({ "to": "x@example.org" })] {
        let job = manage::run_now(&rig.forge, &By::Operator, Kind::MailSend, payload).await.expect("it ran");
        assert_eq!((job.state.as_str(), job.attempts), ("failed", 1));
    }
    assert!(rig.mails().await.is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn housekeeping_forgets_ended_logins_dead_links_old_counts_and_old_mails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.sign_up("alice").await;
    rig.viewer(id).await;
    rig.run_jobs().await;
    let outbox = rig.database.data_dir().join("outbox");
    let mails = || fs::read_dir(&outbox).expect("there").count();
    let counts = async || {
        let mut conn = rig.store.read().await.expect("readable");
        let now = rig.store.clock().now();
        abide_store::accounts::sessions::of_user(&mut conn, id, now, 10).await.expect("readable").len()
    };
    manage::run_now(&rig.forge, &By::Operator, Kind::HistoryPrune, json!({})).await.expect("it ran");
    assert_eq!((mails(), counts().await), (1, 1), "nothing is old yet");
    rig.clock.advance(Duration::from_secs(31 * 86_400));
    let job = manage::run_now(&rig.forge, &By::Operator, Kind::HistoryPrune, json!({})).await.expect("it ran");
    assert_eq!((job.state.as_str(), mails(), counts().await), ("done", 0, 0));
}
