//! Many who watch.

use super::*;
use abide_forge::By;
use abide_store::accounts::users::{self, NewUser};
use abide_store::attention::{notification_mail, watches};
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn twelve_hundred_watchers_are_each_told_and_mailed_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const MANY: usize = 1200;
    let world = world(engine).await;
    let added: Result<(), StoreError> = world
        .rig
        .store
        .write(world.repo.id, |tx, &repo| {
            Box::pin(async move {
                for n in 0..MANY {
                    let name = format!("watcher{n}");
                    let new = NewUser {
                        name: name.parse().expect("a name"),
                        email: format!("{name}@example.org"),
                        password_hash: "$argon2id$".into(),
                        site_admin: false,
                    };
                    let user = users::insert(tx, &new).await?;
                    let email = emails::list(tx, user).await?.remove(0);
                    emails::verify(tx, email.id).await?;
                    watches::set(tx, user, repo, WatchLevel::All).await?;
                }
                Ok(())
            })
        })
        .await;
    added.expect("added");
    let issue = world.open(&world.ann, "For all", "").await;
    world.settle().await;
    manage::run_now(world.forge(), &By::Operator, Kind::NotifyMail, json!({})).await.expect("it ran");
    let queued = async || {
        let jobs = manage::list(world.forge(), &By::Operator, Some("waiting"), 10_000).await.expect("readable");
        jobs.iter().filter(|job| job.kind == Kind::MailSend.as_str()).count()
    };
    assert_eq!(queued().await, MANY);
    world.say(&world.ann, &issue, "and again").await;
    world.settle().await;
    manage::run_now(world.forge(), &By::Operator, Kind::NotifyMail, json!({})).await.expect("it ran");
    assert_eq!(queued().await, MANY, "the window is open");
    let mut conn = world.rig.store.read().await.expect("readable");
    for n in [0, 499, 500, 999, 1000, MANY - 1] {
        let user = world.account(&format!("watcher{n}")).await;
        let caller = Caller::of(user.actor(), None);
        let item = inbox::list(world.forge(), &caller, Filter::default(), FIRST).await.expect("readable").remove(0);
        let reported = notification_mail::of(&mut conn, user.id, item.thread).await.expect("readable").expect("told");
        assert_eq!(reported.events, 1, "one more waits for the next mail");
    }
}
