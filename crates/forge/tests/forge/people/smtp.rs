//! Handing mails to a mail server: aiosmtpd, as people install it from PyPI.

use crate::rig::{Rig, rig_with};
use abide_core::account::SignUpMode;
use abide_forge::By;
use abide_forge::SmtpUrl;
use abide_forge::jobs::{Job, manage, runner};
use abide_testkit::Engine;
use mail_parser::MessageParser;
use rstest::rstest;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A mail server of this test's own. Ends with its standard input.
struct MailServer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    port: u16,
}

impl MailServer {
    fn start() -> Self {
        let python = std::env::var("ABIDE_TEST_PYTHON").unwrap_or_else(|_| {
            panic!(
                "this test needs aiosmtpd: run it through `./test smtp`, which installs it, or set ABIDE_TEST_PYTHON to \
                 the python of an environment with crates/cli/tests/pygithub/requirements.txt"
            )
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp/server.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("readable");
        let port = line.trim().parse().expect("aiosmtpd tells its port");
        Self { child, input, output, port }
    }

    fn url(&self) -> String {
        format!("smtp://forge:p%40ss%20word@127.0.0.1:{}", self.port)
    }

    /// The next mail that it took.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// Received mails that no test has read yet.
    fn rest(mut self) -> usize {
        drop(self.input.take());
        let left = self.output.by_ref().lines().count();
        self.child.wait().expect("it ends");
        left
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

async fn site(engine: Engine, url: &str) -> Rig {
    rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.mail.smtp_url = Some(SmtpUrl(url.into()));
        settings.mail.from = "Forge <forge@example.org>".into();
    })
    .await
}

/// Runs jobs until the first one is as wanted.
async fn run_until(rig: &Rig, wanted: impl Fn(&Job) -> bool) -> Job {
    let stop = CancellationToken::new();
    let running = tokio::spawn(runner::run(rig.forge.clone(), stop.clone()));
    let mut job = None;
    for _ in 0..1000 {
        job =
            manage::list(&rig.forge, &By::Operator, None, 10).await.expect("readable").pop().filter(|job| wanted(job));
        if job.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.expect("the runner stops");
    job.expect("the job got there")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_handed_to_the_configured_server(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = MailServer::start();
    let rig = site(engine, &server.url()).await;
    rig.sign_up("alice").await;
    run_until(&rig, |job| job.state == "done").await;

    let taken = server.next();
    assert_eq!((&taken["user"], &taken["from"]), (&"forge".into(), &"forge@example.org".into()));
    assert_eq!(taken["to"], serde_json::json!(["alice@example.org"]));
    let data = taken["data"].as_str().expect("text");
    let mail = MessageParser::default().parse(data.as_bytes()).expect("a mail");
    assert_eq!(mail.subject(), Some("Verify your e-mail address"));
    assert!(mail.body_text(0).expect("a text").contains("/verify/"));
    assert!(!rig.database.data_dir().join("outbox").exists(), "nothing is left here");
    assert_eq!(server.rest(), 0, "it was sent once");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_puts_off_is_sent_later_and_what_it_refuses_is_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = MailServer::start();
    let rig = site(engine, &server.url()).await;
    rig.try_sign_up("alice", "later@example.org", None).await.expect("signed up");
    let put_off = run_until(&rig, |job| job.state == "waiting" && job.attempts == 1).await;
    assert!(put_off.last_error.is_some_and(|text| text.contains("come back later")));
    rig.clock.set(put_off.run_at);
    run_until(&rig, |job| job.state == "done").await;
    assert_eq!(server.next()["to"], serde_json::json!(["later@example.org"]));

    let other = site(engine, &server.url()).await;
    other.try_sign_up("bob", "refused@example.org", None).await.expect("signed up");
    let refused = run_until(&other, |job| job.state == "failed").await;
    assert_eq!(refused.attempts, 1);
    assert!(refused.last_error.is_some_and(|text| text.contains("nobody is called that")));
    assert_eq!(server.rest(), 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_the_encryption_that_was_asked_for_nothing_is_sent(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = MailServer::start();
    for url in [format!("{}?tls=required", server.url()), server.url().replace("smtp://", "smtps://")] {
        let rig = site(engine, &url).await;
        rig.sign_up("alice").await;
        let waits = run_until(&rig, |job| job.state == "waiting" && job.attempts == 1).await;
        let said = waits.last_error.expect("it says why");
        assert!(said.contains("did not accept the mail") && !said.contains("p%40ss"), "{said}");
    }
    assert_eq!(server.rest(), 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_for_the_server_loses_no_mail(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = MailServer::start();
    let rig = site(engine, &server.url().replace("word@", "wort@")).await;
    rig.sign_up("alice").await;
    let waits = run_until(&rig, |job| job.state == "waiting" && job.attempts == 1).await;
    assert!(waits.last_error.is_some_and(|text| text.contains("535")));
    assert_eq!(server.rest(), 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_tried_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // Bound and never answered at: nobody else gets the port meanwhile.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("smtp://127.0.0.1:{}", silent.local_addr().expect("bound").port());
    let rig = rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.mail.smtp_url = Some(SmtpUrl(url.into()));
        settings.mail.timeout = Duration::from_millis(100);
    })
    .await;
    rig.sign_up("alice").await;
    let waits = run_until(&rig, |job| job.state == "waiting" && job.attempts == 1).await;
    assert!(waits.run_at > waits.created_at, "later");
    assert!(waits.last_error.is_some());
}
