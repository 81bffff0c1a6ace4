//! Notification mails: recipients, frequency and unsubscribing.

use super::*;
use abide_core::WatchLevel::{All, Ignore};
use abide_forge::By;
use abide_forge::notify::{preferences, unsubscribe};
use abide_forge::repos::marks;
use rstest::rstest;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(600);

/// The part of an unsubscribing address that is not the same for everyone.
fn token(mail: &Mail) -> String {
    let header = mail.headers["list-unsubscribe"].trim_matches(['<', '>']);
    header.strip_prefix(&format!("{SITE}/notifications/unsubscribe/")).expect("our address").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_says_what_happened_and_carries_what_mail_programs_go_by(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "Ünder construction\u{2026}", "The first line.\n\nThe second.").await;
    let first = world.mails().await;
    assert_eq!(first.len(), 1);
    let mail = &first[0];
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), ("bob@example.org", "[ann/tool] Ünder construction… (#1)"));
    for part in [
        "ann opened #1 (Ünder construction…)",
        "The first line.",
        "The second.",
        "https://git.example.org/ann/tool/issues/1\n",
        "because you watch this repository",
        "https://git.example.org/settings/notifications",
    ] {
        assert!(mail.text.replace("\r\n", "\n").contains(part), "{part:?} in {}", mail.text);
    }
    let repo = world.repo.id;
    assert_eq!(mail.headers["list-id"], format!("\"ann/tool\" <repo-{repo}.example.org>"));
    assert_eq!(mail.headers["list-unsubscribe-post"], "List-Unsubscribe=One-Click");
    assert!(mail.text.contains(&token(mail)));
    assert_eq!(mail.headers["auto-submitted"], "auto-generated");
    assert_eq!(mail.headers["precedence"], "list");
    assert_eq!(mail.headers["list-archive"], "<https://git.example.org/ann/tool/issues/1>");

    world.rig.clock.advance(WINDOW);
    world.say(&world.carol, &issue, "A word.").await;
    let second = world.mails().await;
    let second = second.iter().find(|mail| mail.to == "bob@example.org").expect("a mail to bob");
    assert!(second.text.contains("carol commented on #1") && second.text.contains("A word."), "{}", second.text);
    assert_eq!(second.headers["in-reply-to"], mail.headers["in-reply-to"], "one thread in the reader's program");
    assert_eq!(second.headers["references"], mail.headers["references"]);
    assert_ne!(second.headers["message-id"], mail.headers["message-id"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_only_to_verified_addresses_and_never_to_who_did_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    for caller in [&world.ann, &world.bob, &world.eve] {
        world.watch(caller, All).await;
    }
    world.open(&world.ann, "News", "").await;
    assert_eq!(world.mailed().await, [("bob@example.org".into(), "[ann/tool] News (#1)".to_owned())]);
    assert_eq!(world.who().await, ["bob", "eve"], "the inbox needs no address");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn everyone_chooses_for_which_reasons_they_get_mail(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let all = preferences::mails(world.forge(), &world.bob).await.expect("readable");
    assert!(all.iter().all(|(_, wanted)| *wanted), "{all:?}");
    let others: Vec<_> = all.iter().map(|(reason, _)| *reason).filter(|&reason| reason != Reason::Watching).collect();
    preferences::set_mails(world.forge(), &world.bob, &others).await.expect("chosen");
    let issue = world.open(&world.ann, "News", "").await;
    assert_eq!(world.mailed().await, []);
    assert_eq!(world.who().await, ["bob"]);
    world.say(&world.ann, &issue, "@bob").await;
    assert_eq!(world.mailed().await.len(), 1);
    preferences::set_mails(world.forge(), &world.bob, &[]).await.expect("chosen");
    world.rig.clock.advance(WINDOW);
    world.say(&world.ann, &issue, "@bob again").await;
    assert_eq!(world.mailed().await, []);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_within_the_window_is_told_when_it_ends_and_nothing_is_lost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "News", "").await;
    assert_eq!(world.mailed().await.len(), 1);
    for text in ["first", "second", "third"] {
        world.rig.clock.advance(Duration::from_secs(60));
        world.say(&world.ann, &issue, text).await;
        assert_eq!(world.mailed().await, []);
    }
    let other = world.open(&world.ann, "Elsewhere", "").await;
    assert_eq!(world.mailed().await.len(), 1, "another thread has a window of its own");
    world.rig.clock.advance(Duration::from_secs(421));
    let mails = world.mails().await;
    assert_eq!(mails.len(), 1);
    assert!(mails[0].text.contains("third"), "the last word: {}", mails[0].text);
    assert!(mails[0].text.contains("2 more events have occurred"), "{}", mails[0].text);
    world.rig.clock.advance(WINDOW);
    assert_eq!(world.mailed().await, []);
    world.say(&world.ann, &other, "at once").await;
    assert_eq!(world.mailed().await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_click_ends_a_thread_and_a_forged_one_ends_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "News", "").await;
    let token = token(&world.mails().await[0]);
    let (user, rest) = token.split_once('-').expect("for whom");
    let (thread, signature) = rest.split_once('-').expect("about what");
    let forged = [
        String::new(),
        "x".into(),
        token[..token.len() - 1].to_owned(),
        format!("{}-{thread}-{signature}", id(&world.carol)),
        format!("{user}-{}-{signature}", thread.parse::<i64>().expect("a number") + 1),
        format!("{user}-{thread}"),
        format!("{user}-{thread}-"),
        format!("0{token}"),
        format!("{signature}-{token}"),
    ];
    for forged in forged {
        assert!(!unsubscribe::is_good(world.forge(), &forged).await.expect("readable"), "{forged}");
        assert!(!unsubscribe::unsubscribe(world.forge(), &forged).await.expect("readable"), "{forged}");
    }
    world.rig.clock.advance(WINDOW);
    world.say(&world.ann, &issue, "still here").await;
    assert_eq!(world.mailed().await.len(), 1, "nothing of that was taken");

    // One is waiting for the end of the window when he says no.
    world.say(&world.ann, &issue, "one more").await;
    world.settle().await;
    assert!(unsubscribe::is_good(world.forge(), &token).await.expect("readable"));
    world.rig.clock.advance(Duration::from_secs(1));
    assert!(unsubscribe::unsubscribe(world.forge(), &token).await.expect("written"));
    assert!(unsubscribe::unsubscribe(world.forge(), &token).await.expect("written"), "again is no harm");
    world.rig.clock.advance(WINDOW);
    assert_eq!(world.mailed().await, []);
    world.say(&world.ann, &issue, "anyone?").await;
    world.rig.clock.advance(WINDOW);
    assert_eq!(world.mailed().await, []);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_mail_goes_to_someone_who_lost_access_on_the_way(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    world.watch(&world.carol, All).await;
    let hide = async |visibility| {
        marks::set_visibility(world.forge(), &world.ann, &world.repo, visibility).await.expect("changed");
    };
    // Told, but not yet written.
    world.open(&world.ann, "Secret plans", "the text").await;
    world.settle().await;
    hide(Visibility::Private).await;
    let mailed: Vec<_> = world.mailed().await.into_iter().filter(|(to, _)| to != "ann@example.org").collect();
    assert_eq!(mailed, []);

    // Written, but not yet sent.
    hide(Visibility::Public).await;
    world.mails().await;
    world.open(&world.ann, "More plans", "the text").await;
    world.settle().await;
    manage::run_now(world.forge(), &By::Operator, Kind::NotifyMail, json!({})).await.expect("it ran");
    hide(Visibility::Private).await;
    let sent: Vec<_> = world.delivered().await.into_iter().filter(|mail| mail.to != "ann@example.org").collect();
    assert!(sent.is_empty(), "{sent:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_ignores_the_repository_before_a_mail_is_due_does_not_get_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    world.open(&world.ann, "News", "").await;
    world.settle().await;
    world.rig.clock.advance(Duration::from_secs(1));
    world.watch(&world.bob, Ignore).await;
    assert_eq!(world.mailed().await, []);
}
