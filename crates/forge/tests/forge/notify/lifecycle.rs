//! Changes of a repository itself are mailed to its people, whatever they may read; to their actor only what cannot
//! be undone or hands something away.

use super::*;
use abide_core::transfer::Answer;
use abide_forge::notify::preferences;
use abide_forge::repos::{delete, marks, purge, redirects, rename, restore, transfer};
use rstest::rstest;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn to(names: &[&str], subject: &str) -> Vec<(String, String)> {
    names.iter().map(|name| (format!("{name}@example.org"), subject.to_owned())).collect()
}

/// Ann owns a repository, dave administers it, carol reads it.
async fn shared(engine: Engine, visibility: Visibility) -> World {
    let world = world(engine).await;
    marks::set_visibility(world.forge(), &world.ann, &world.repo, visibility).await.expect("set");
    world.share("dave", Role::Admin).await;
    world.share("carol", Role::Read).await;
    world.mails().await;
    world
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn owner_and_admins_hear_of_all_that_happens_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Visibility::Public, Visibility::Private)] visibility: Visibility,
) {
    let world = shared(engine, visibility).await;
    let forge = world.forge();
    let all = ["ann", "dave"];
    // Carol watches, because she was asked to work on it; what she gets is an ordinary mail, one per window.
    let renamed = rename::rename(forge, &world.ann, &world.repo, "renamed").await.expect("renamed").repo;
    let subject = "[ann/renamed] Renamed from tool to renamed";
    let mut mailed = world.mailed().await;
    mailed.retain(|(to, _)| to != "carol@example.org");
    assert_eq!(mailed, to(&["dave"], subject), "ann knows");

    marks::archive(forge, &world.dave, &renamed).await.expect("archived");
    assert_eq!(world.mailed().await, to(&["ann"], "[ann/renamed] Archived"), "no window holds them back");
    marks::unarchive(forge, &world.ann, &renamed).await.expect("unarchived");
    assert_eq!(world.mailed().await, to(&["dave"], "[ann/renamed] Unarchived"));

    let other = if visibility == Visibility::Public { Visibility::Private } else { Visibility::Public };
    marks::set_visibility(forge, &world.ann, &renamed, other).await.expect("changed");
    assert_eq!(world.mailed().await, to(&["dave"], &format!("[ann/renamed] Made {other}")));
    marks::set_visibility(forge, &world.ann, &renamed, visibility).await.expect("changed");
    world.mails().await;

    let old = redirects::list(forge, &world.ann, &renamed).await.expect("readable").remove(0);
    redirects::release(forge, &world.ann, &renamed, &old.id.to_string()).await.expect("released");
    assert_eq!(world.mailed().await, to(&all, "[ann/renamed] Old name tool released"));

    let bob = world.account("bob").await;
    collaborators::set(forge, &world.ann, &renamed, &bob, Role::Write).await.expect("added");
    let mut mailed = to(&["bob"], "[ann/renamed] ann added you as a collaborator (write)");
    mailed.extend(to(&["dave"], "[ann/renamed] ann added bob as a collaborator (write)"));
    assert_eq!(world.mailed().await, mailed);
    collaborators::remove(forge, &world.ann, &renamed, &bob).await.expect("removed");
    let mut mailed = to(&["ann"], "[ann/renamed] You removed bob as a collaborator");
    mailed.extend(to(&["bob"], "[ann/renamed] ann removed you as a collaborator"));
    mailed.extend(to(&["dave"], "[ann/renamed] ann removed bob as a collaborator"));
    assert_eq!(world.mailed().await, mailed);
    collaborators::set(forge, &world.ann, &renamed, &bob, Role::Admin).await.expect("added");
    let mut mailed = to(&["ann"], "[ann/renamed] You added bob as a collaborator (admin)");
    mailed.extend(to(&["bob"], "[ann/renamed] ann added you as a collaborator (admin)"));
    mailed.extend(to(&["dave"], "[ann/renamed] ann added bob as a collaborator (admin)"));
    assert_eq!(world.mailed().await, mailed, "who makes an admin hands something away");
}

/// In two steps as in one: whoever takes over a session does not make an admin unnoticed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn raising_a_collaborator_to_admin_is_told_like_adding_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = shared(engine, Visibility::Private).await;
    let forge = world.forge();
    let bob = world.account("bob").await;
    collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Read).await.expect("added");
    let mut mailed = to(&["bob"], "[ann/tool] ann added you as a collaborator (read)");
    mailed.extend(to(&["dave"], "[ann/tool] ann added bob as a collaborator (read)"));
    assert_eq!(world.mailed().await, mailed);
    collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Maintain).await.expect("raised");
    assert_eq!(world.mailed().await, [], "it hands nothing away");
    let reported = world.inbox(&world.dave).await.len();
    collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Admin).await.expect("raised");
    let mails = world.mails().await;
    let mut names: Vec<_> = mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect();
    names.sort();
    let mut mailed = to(&["ann"], "[ann/tool] You changed the role of bob to admin");
    mailed.extend(to(&["bob"], "[ann/tool] ann changed your role to admin"));
    mailed.extend(to(&["dave"], "[ann/tool] ann changed the role of bob to admin"));
    assert_eq!(names, mailed);
    let said = mails.iter().find(|mail| mail.to == "dave@example.org").expect("dave is mailed");
    assert!(
        said.text.contains("ann changed the role of bob in ann/tool to admin. The role was maintain."),
        "{}",
        said.text
    );
    assert!(world.inbox(&world.dave).await.len() >= reported, "and in the inbox");
    collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Write).await.expect("lowered");
    assert_eq!(world.mailed().await, [], "nor does taking it back");
}

/// The mail names the repository, which the former collaborator knew, and says nothing else about a private one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_collaborator_is_mailed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Visibility::Public, Visibility::Private)] visibility: Visibility,
) {
    let world = shared(engine, visibility).await;
    let (forge, page) = (world.forge(), format!("{SITE}/ann/tool"));
    let bob = world.account("bob").await;
    let share = async || {
        collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Write).await.expect("added");
        world.mails().await;
    };
    share().await;
    collaborators::remove(forge, &world.dave, &world.repo, &bob).await.expect("removed");
    let mut mails = world.mails().await;
    mails.sort_by(|one, other| one.to.cmp(&other.to));
    let names: Vec<_> = mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect();
    let mut mailed = to(&["ann"], "[ann/tool] dave removed bob as a collaborator");
    mailed.extend(to(&["bob"], "[ann/tool] dave removed you as a collaborator"));
    mailed.extend(to(&["dave"], "[ann/tool] You removed bob as a collaborator"));
    assert_eq!(names, mailed);
    let [ann, bobs, dave] = &mails[..] else { panic!("{mails:?}") };
    assert!(
        ann.text.contains("dave removed bob from the collaborators of ann/tool. The role was write."),
        "{}",
        ann.text
    );
    assert!(dave.text.contains("You removed bob from the collaborators of ann/tool."), "{}", dave.text);
    assert!(bobs.text.contains("dave removed you from the collaborators of ann/tool."), "{}", bobs.text);
    assert_eq!(bobs.text.contains(&page), visibility == Visibility::Public, "{}", bobs.text);
    let hears = world.inbox(&world.bob).await.iter().any(|(_, title)| title == "dave removed you as a collaborator");
    assert_eq!(hears, visibility == Visibility::Public, "the inbox tells only of what he may read");

    share().await;
    collaborators::remove(forge, &world.bob, &world.repo, &bob).await.expect("he leaves");
    let mails = world.mails().await;
    let said = |name: &str| mails.iter().find(|mail| mail.to.starts_with(name)).map(|mail| mail.text.as_str());
    assert!(said("bob").is_some_and(|text| text.contains("You left ann/tool.")), "{mails:?}");
    assert!(said("ann").is_some_and(|text| text.contains("bob left ann/tool")), "{mails:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_mailed_over_and_over_by_someone_who_keeps_bringing_them_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = shared(engine, Visibility::Public).await;
    let forge = world.forge();
    let bob = world.account("bob").await;
    let mut mailed = Vec::new();
    for _ in 0..8 {
        collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Write).await.expect("added");
        collaborators::remove(forge, &world.ann, &world.repo, &bob).await.expect("removed");
        mailed.extend(world.mailed().await.into_iter().map(|(to, _)| to));
    }
    let count = |who: &str| mailed.iter().filter(|to| *to == &format!("{who}@example.org")).count();
    assert_eq!((count("bob"), count("ann"), count("dave")), (5, 8, 16), "the admins have to know of each");

    // By someone else, and an hour later, it is news again.
    collaborators::set(forge, &world.dave, &world.repo, &bob, Role::Write).await.expect("added");
    assert!(world.mailed().await.iter().any(|(to, _)| to == "bob@example.org"));
    collaborators::remove(forge, &world.dave, &world.repo, &bob).await.expect("removed");
    world.rig.clock.advance(Duration::from_secs(3601));
    collaborators::set(forge, &world.ann, &world.repo, &bob, Role::Write).await.expect("added");
    assert!(world.mailed().await.iter().any(|(to, _)| to == "bob@example.org"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_mailed_with_the_end_of_its_grace_and_the_way_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = shared(engine, Visibility::Private).await;
    let forge = world.forge();
    let until = delete::delete(forge, &world.ann, &world.repo).await.expect("deleted");
    let mut mails = world.mails().await;
    mails.sort_by(|one, other| one.to.cmp(&other.to));
    let names: Vec<_> = mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect();
    assert_eq!(names, to(&["ann", "dave"], "[ann/tool] Deleted"));
    let [ann, dave] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!(until.to_string(), "2026-01-08T00:00:00Z");
    assert!(ann.text.contains("You deleted the repository ann/tool."), "{}", ann.text);
    assert!(ann.text.contains("until 2026-01-08T00:00:00Z (UTC)"), "{}", ann.text);
    let link = format!("{SITE}/settings/repositories#repo-{}", world.repo.id);
    assert!(ann.text.contains(&link), "{}", ann.text);
    assert!(dave.text.contains("ann deleted") && !dave.text.contains(&link), "{}", dave.text);
    assert!(dave.text.contains("until 2026-01-08T00:00:00Z (UTC)"), "{}", dave.text);
    assert!(!ann.headers.contains_key("list-unsubscribe"), "it cannot be turned off");

    restore::restore(forge, &world.ann, &world.repo.id.to_string(), None).await.expect("restored");
    let mut mailed = world.mailed().await;
    mailed.retain(|(to, _)| to != "carol@example.org");
    assert_eq!(mailed, to(&["dave"], "[ann/tool] Restored"));

    delete::delete(forge, &world.ann, &world.repo).await.expect("deleted");
    world.mails().await;
    world.rig.clock.advance(8 * DAY);
    assert_eq!(purge::sweep(forge).await.expect("swept").removed, 1);
    assert_eq!(world.mailed().await, to(&["ann", "dave"], "[ann/tool] Deleted permanently"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_an_offer_hear_of_it_also_of_a_private_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = shared(engine, Visibility::Private).await;
    let forge = world.forge();
    let offer = async || {
        let offer = transfer::offer(forge, &world.ann, &world.repo_now().await, "bob").await.expect("offered");
        offer.transfer.id.to_string()
    };
    let first = offer().await;
    let mut mails = world.mails().await;
    mails.sort_by(|one, other| one.to.cmp(&other.to));
    let names: Vec<_> = mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect();
    let mut mailed = to(&["ann"], "[ann/tool] You offered to transfer ann/tool to bob");
    mailed.extend(to(&["bob"], "[ann/tool] ann wants to transfer ann/tool to you"));
    assert_eq!(names, mailed);
    assert!(mails[0].text.contains("You offered to transfer ann/tool to bob."), "{}", mails[0].text);
    assert!(mails[1].text.contains("ann wants to transfer ann/tool to you."), "{}", mails[1].text);
    assert!(mails[1].text.contains(&format!("{SITE}/transfers/{first}")), "{}", mails[1].text);
    assert!(mails[1].text.contains("Accept or decline it until 2026-01-08T00:00:00Z (UTC)"), "{}", mails[1].text);
    assert_eq!(world.inbox(&world.bob).await, [], "he may not read it");

    transfer::answer(forge, &world.bob, &first, Answer::Decline).await.expect("declined");
    assert_eq!(world.mailed().await, to(&["ann"], "[ann/tool] Transfer declined by bob"));
    assert_eq!(world.inbox(&world.ann).await.len(), 1);
    let second = offer().await;
    world.mails().await;
    transfer::answer(forge, &world.ann, &second, Answer::Cancel).await.expect("taken back");
    assert_eq!(world.mailed().await, to(&["bob"], "[ann/tool] Transfer to you cancelled"));
    offer().await;
    world.mails().await;
    world.rig.clock.advance(8 * DAY);
    purge::sweep(forge).await.expect("swept");
    let mut expired = to(&["ann"], "[ann/tool] Transfer to bob expired");
    expired.extend(to(&["bob"], "[ann/tool] Transfer to you expired"));
    assert_eq!(world.mailed().await, expired);
    let last = offer().await;
    world.mails().await;
    transfer::answer(forge, &world.bob, &last, Answer::Accept).await.expect("accepted");
    let mut mailed = world.mailed().await;
    mailed.retain(|(to, _)| !["carol@example.org", "dave@example.org"].contains(&to.as_str()));
    let mut accepted = to(&["ann"], "[bob/tool] Transferred from you to bob");
    accepted.extend(to(&["bob"], "[bob/tool] ann transferred ann/tool to you"));
    assert_eq!(mailed, accepted);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_hands_over_is_told_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    transfer::hand_over(world.forge(), &Caller::operator(), &world.repo, "bob").await.expect("handed over");
    let mails = world.mails().await;
    let mut names: Vec<_> = mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect();
    names.sort();
    let mut mailed = to(&["ann"], "[bob/tool] The operator of this site transferred ann/tool to bob");
    mailed.extend(to(&["bob"], "[bob/tool] The operator of this site transferred ann/tool to you"));
    assert_eq!(names, mailed);
    let title = "The operator of this site transferred ann/tool to you".to_owned();
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Lifecycle, title)]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_two_sides_see_in_their_inbox_that_something_was_offered(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = shared(engine, Visibility::Public).await;
    world.watch(&world.eve, WatchLevel::All).await;
    world.all_read().await;
    transfer::offer(world.forge(), &world.ann, &world.repo, "bob").await.expect("offered");
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Lifecycle, "ann wants to transfer ann/tool to you".into())]);
    assert_eq!(world.who().await, ["bob"], "neither watchers nor other admins");
}

/// One event, two titles: the new collaborator is "you", everyone else reads a name.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_addresses_its_reader(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = shared(engine, Visibility::Public).await;
    world.all_read().await;
    world.share("bob", Role::Write).await;
    let titles = async |caller| world.inbox(caller).await.into_iter().map(|(_, title)| title).collect::<Vec<_>>();
    assert_eq!(titles(&world.bob).await, ["ann added you as a collaborator (write)"]);
    assert_eq!(titles(&world.dave).await, ["ann added bob as a collaborator (write)"]);

    world.all_read().await;
    let repo = world.repo_now().await;
    let offer = transfer::offer(world.forge(), &world.ann, &repo, "bob").await.expect("offered").transfer.id;
    transfer::answer(world.forge(), &world.bob, &offer.to_string(), Answer::Accept).await.expect("accepted");
    assert_eq!(titles(&world.ann).await, ["Transferred from you to bob"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_an_offer_reads_its_notification(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = shared(engine, Visibility::Public).await;
    for answer in [Answer::Decline, Answer::Accept] {
        world.all_read().await;
        let repo = world.repo_now().await;
        let offer = transfer::offer(world.forge(), &world.ann, &repo, "bob").await.expect("offered");
        assert_eq!(world.inbox(&world.bob).await.len(), 1);
        assert_eq!(
            transfer::pending_with(world.forge(), &world.bob, repo.id).await.expect("readable"),
            Some(offer.transfer.id)
        );
        assert_eq!(transfer::pending_with(world.forge(), &world.eve, repo.id).await.expect("readable"), None);
        transfer::answer(world.forge(), &world.bob, &offer.transfer.id.to_string(), answer).await.expect("answered");
        assert_eq!(world.inbox(&world.bob).await, [], "{answer:?}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_to_a_watcher_says_that_they_watch_also_after_news_about_their_role(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.share("bob", Role::Write).await;
    world.watch(&world.bob, WatchLevel::All).await;
    assert_eq!(world.inbox(&world.bob).await.len(), 1);
    world.mails().await;
    marks::archive(world.forge(), &world.ann, &world.repo).await.expect("archived");
    let mails = world.mails().await;
    let mail = mails.iter().find(|mail| mail.to == "bob@example.org").expect("a mail to bob");
    assert!(mail.text.contains("You get this mail because you watch this repository."), "{}", mail.text);

    // Nor does the news about the role bring a mail that a watcher turned off.
    preferences::set_mails(world.forge(), &world.bob, &[Reason::Mention]).await.expect("chosen");
    world.rig.clock.advance(DAY);
    marks::unarchive(world.forge(), &world.ann, &world.repo).await.expect("unarchived");
    assert_eq!(world.mailed().await, []);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_with_an_unverified_address_is_mailed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let eves = make(world.forge(), &world.eve, "eves", Visibility::Public).await;
    marks::archive(world.forge(), &world.eve, &eves).await.expect("archived");
    assert_eq!(world.mailed().await, []);
}
