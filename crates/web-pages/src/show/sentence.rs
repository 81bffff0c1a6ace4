//! Feed events as sentences, for pages and for feed readers.

use super::text::readable;
use abide_core::event::{IssueRef, NostrAddition, Origin, Push, PushedCommit};
use abide_core::feed::FeedEvent;
use abide_forge::feeds::Item;

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Text and URL.
    Link(String, String),
}

/// A commit in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub short: String,
    pub subject: String,
    pub page: String,
}

/// Commits that are shown of one push.
const COMMITS: usize = 3;

/// An event as a sentence that starts with the actor.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub icon: &'static str,
    pub pieces: Vec<Piece>,
    /// Beginning of the issue or comment, if the event has a text.
    pub excerpt: String,
    /// The newest commits that were pushed.
    pub commits: Vec<Line>,
    pub item: Item,
}

impl Sentence {
    pub(crate) fn of(item: Item) -> Self {
        let mut pieces = vec![match &item.actor {
            Some((_, name)) => Piece::Link(name.shown().into_owned(), format!("/{name}")),
            None => match item.event.nostr() {
                Some(addition) => Piece::Text(readable(&addition.author)),
                None => Piece::Text("The operator".into()),
            },
        }];
        pieces.extend(deed(&item));
        let excerpt = item.excerpt.clone();
        Self { icon: icon(&item.event), pieces, excerpt, commits: commits(&item), item }
    }

    /// The sentence without links.
    pub(crate) fn text(&self) -> String {
        let words = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Link(text, _) => text.as_str(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// URL of the object of the sentence; without an object, of the actor.
    pub(crate) fn target(&self) -> &str {
        let leads = |piece: &Piece| matches!(piece, Piece::Link(..));
        let index = self.pieces.iter().skip(1).position(leads).map_or(0, |index| index + 1);
        match self.pieces.get(index) {
            Some(Piece::Link(_, to)) => to,
            _ => "/",
        }
    }

    /// The name of the actor.
    pub(crate) fn who(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(name) | Piece::Link(name, _)) => name,
            None => "",
        }
    }
}

fn commits(item: &Item) -> Vec<Line> {
    let FeedEvent::Push(push) = &item.event else { return Vec::new() };
    let slug = item.repo.as_ref().map(|repo| repo.slug()).unwrap_or_default();
    let line = |commit: &PushedCommit| Line {
        short: commit.id.chars().take(7).collect(),
        subject: commit.message.clone(),
        page: format!("/{slug}/commit/{}", commit.id),
    };
    push.refs().iter().flat_map(|pushed| &pushed.commits).map(line).take(COMMITS).collect()
}

fn icon(event: &FeedEvent) -> &'static str {
    match event {
        FeedEvent::Star(_) => "i-star",
        FeedEvent::RepoForked(_) => "i-fork",
        FeedEvent::Push(_) => "i-branch",
        FeedEvent::Follow(_) => "i-eye",
        FeedEvent::IssueCreated(_)
        | FeedEvent::IssueClosed(_)
        | FeedEvent::IssueReopened(_)
        | FeedEvent::IssueCommentCreated(_) => "i-issue",
        FeedEvent::PrOpened(_)
        | FeedEvent::PrCommentCreated(_)
        | FeedEvent::PrSynchronized(_)
        | FeedEvent::PrClosed(_)
        | FeedEvent::PrMerged(_)
        | FeedEvent::PrReopened(_) => "i-branch",
        FeedEvent::RepoCreated(_)
        | FeedEvent::RepoRenamed(_)
        | FeedEvent::RepoTransferAccepted(_)
        | FeedEvent::RepoArchived(_)
        | FeedEvent::RepoUnarchived(_)
        | FeedEvent::RepoVisibilityChanged(_)
        | FeedEvent::RepoRestored(_) => "i-repo",
    }
}

/// The sentence after the actor's name.
fn deed(item: &Item) -> Vec<Piece> {
    let slug = item.repo.as_ref().map(|repo| repo.slug()).unwrap_or_default();
    let repo = || Piece::Link(readable(&slug), format!("/{slug}"));
    let text = |words: &str| Piece::Text(words.to_owned());
    let about = |verb: &str| vec![text(verb), repo()];
    let nostr = |verb: &str, addition: &NostrAddition| {
        let link = Piece::Link(item.title.clone(), format!("/{slug}/nostr/{}", addition.thread));
        vec![text(verb), link, text("in"), repo()]
    };
    let local = |verb: &str, issue: &IssueRef| {
        let (number, title) = (issue.number, &item.title);
        let link = Piece::Link(format!("#{number} {title}").trim_end().to_owned(), format!("/{slug}/issues/{number}"));
        vec![text(verb), link, text("in"), repo()]
    };
    match &item.event {
        FeedEvent::RepoCreated(_) => about("created"),
        FeedEvent::RepoForked(_) => about("forked a repository as"),
        FeedEvent::Star(_) => about("starred"),
        FeedEvent::RepoArchived(_) => about("archived"),
        FeedEvent::RepoUnarchived(_) => about("unarchived"),
        FeedEvent::RepoRestored(_) => about("restored"),
        FeedEvent::RepoRenamed(names) => vec![text(&format!("renamed {} to", names.old_name)), repo()],
        FeedEvent::RepoTransferAccepted(transfer) => {
            let verb = if item.actor.is_some() { "accepted the transfer of" } else { "transferred" };
            let from = transfer.from.as_deref().unwrap_or_default();
            vec![text(verb), repo(), text(&format!("from {}", readable(from)))]
        }
        FeedEvent::RepoVisibilityChanged(change) => vec![text("made"), repo(), text(change.after.as_str())],
        FeedEvent::Follow(follow) => {
            let name = follow.user.as_deref().unwrap_or_default();
            vec![text("follows"), Piece::Link(readable(name), format!("/{name}"))]
        }
        FeedEvent::IssueCreated(Origin::Local(opened)) => local("opened", &opened.issue),
        FeedEvent::IssueClosed(Origin::Local(state)) => local("closed", &state.issue),
        FeedEvent::IssueReopened(Origin::Local(state)) => local("reopened", &state.issue),
        FeedEvent::IssueCommentCreated(Origin::Local(comment)) => local("commented on", &comment.issue),
        FeedEvent::IssueCreated(Origin::Nostr(addition)) | FeedEvent::PrOpened(addition) => nostr("opened", addition),
        FeedEvent::IssueClosed(Origin::Nostr(addition)) | FeedEvent::PrClosed(addition) => nostr("closed", addition),
        FeedEvent::IssueReopened(Origin::Nostr(addition)) | FeedEvent::PrReopened(addition) => {
            nostr("reopened", addition)
        }
        FeedEvent::IssueCommentCreated(Origin::Nostr(addition)) | FeedEvent::PrCommentCreated(addition) => {
            nostr("commented on", addition)
        }
        FeedEvent::PrSynchronized(addition) => nostr("updated", addition),
        FeedEvent::PrMerged(addition) => nostr("merged", addition),
        FeedEvent::Push(push) => pushed(push, &slug, repo()),
    }
}

fn pushed(push: &Push, slug: &str, repo: Piece) -> Vec<Piece> {
    let text = |words: String| Piece::Text(words);
    let count = push.ref_count.unwrap_or_default();
    let [only] = push.refs() else {
        return vec![text(format!("pushed {count} branches and tags to")), repo];
    };
    let name = only.name.as_str();
    let (kind, short) = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(branch), _) => ("branch", branch),
        (_, Some(tag)) => ("tag", tag),
        _ => ("ref", name),
    };
    let path: String = form_urlencoded::byte_serialize(short.as_bytes()).collect::<String>().replace("%2F", "/");
    let shown = Piece::Link(short.to_owned(), format!("/{slug}/tree/{}", path.replace('+', "%20")));
    match (only.is_created(), only.is_deleted()) {
        (_, true) => vec![text(format!("deleted {kind} {short} in")), repo],
        (true, _) => vec![text(format!("created {kind}")), shown, text("in".into()), repo],
        _ => {
            let changes = Piece::Link(short.to_owned(), format!("/{slug}/compare/{}...{}", only.before, only.after));
            vec![text("pushed to".into()), changes, text("in".into()), repo]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::event::{Body, NoDetails, PushedRef};
    use abide_core::{Handle, RepoId, Timestamp, UserId};
    use abide_forge::feeds::FeedRepo;
    use std::path::Path;

    fn handle(text: &str) -> Handle {
        Handle::from_stored(text.to_owned())
    }

    fn sentence(event: FeedEvent) -> Sentence {
        let repo =
            FeedRepo { id: RepoId::new(1), owner: handle("ann"), name: "tool".parse().unwrap(), identifier: None };
        let follow = matches!(event, FeedEvent::Follow(_));
        Sentence::of(Item {
            seq: 1,
            actor: Some((UserId::new(1), handle("bob"))),
            repo: (!follow).then_some(repo),
            public: true,
            event,
            title: String::new(),
            excerpt: String::new(),
            at: Timestamp::from_micros(0),
        })
    }

    #[test]
    fn every_event_in_feeds_has_words_and_leads_somewhere() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/golden/events");
        let mut shown = 0;
        for file in std::fs::read_dir(golden).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let kind = name.split('.').next().unwrap();
            let body = Body::parse(kind, &std::fs::read_to_string(&path).unwrap()).unwrap();
            let Some(event) = FeedEvent::of(body.payload) else { continue };
            let sentence = sentence(event);
            assert!(sentence.text().starts_with("bob "), "{name}");
            assert!(sentence.text().split(' ').count() > 1, "{name}");
            assert!(sentence.target().starts_with('/'), "{name}");
            shown += 1;
        }
        assert!(shown > 20, "{shown}");
    }

    fn push(ref_count: u64, refs: Vec<PushedRef>) -> Sentence {
        sentence(FeedEvent::Push(Push { push_id: None, ref_count: Some(ref_count), refs: Some(refs) }))
    }

    #[test]
    fn a_push_shows_its_newest_commits() {
        let commit = |digit: &str| PushedCommit {
            id: digit.repeat(40),
            message: format!("change {digit}"),
            ..PushedCommit::default()
        };
        let pushed = |name: &str, commits| PushedRef { name: name.into(), commits, ..PushedRef::default() };
        let refs = vec![
            pushed("refs/heads/main", vec![commit("4"), commit("3")]),
            pushed("refs/heads/next", vec![commit("2"), commit("1")]),
        ];
        let shown = push(2, refs).commits;
        let subjects: Vec<_> = shown.iter().map(|line| line.subject.as_str()).collect();
        assert_eq!(subjects, ["change 4", "change 3", "change 2"]);
        assert_eq!(
            (shown[0].short.as_str(), &shown[0].page),
            ("4444444", &format!("/ann/tool/commit/{}", "4".repeat(40)))
        );
        assert_eq!(sentence(FeedEvent::Star(NoDetails {})).commits, []);
    }

    #[test]
    fn a_push_says_what_became_of_the_branch() {
        let zero = "0".repeat(40);
        let one = "1".repeat(40);
        let push_one = |name: &str, before: &str, after: &str| {
            let (name, before, after) = (name.into(), before.into(), after.into());
            push(1, vec![PushedRef { name, before, after, commits: Vec::new() }])
        };
        let made = push_one("refs/heads/a/b c", &zero, &one);
        assert_eq!(
            (made.text().as_str(), made.target()),
            ("bob created branch a/b c in ann/tool", "/ann/tool/tree/a/b%20c")
        );
        assert_eq!(push_one("refs/tags/v1", &one, &zero).text(), "bob deleted tag v1 in ann/tool");
        let moved = push_one("refs/heads/main", &one, &"2".repeat(40));
        assert_eq!(moved.text(), "bob pushed to main in ann/tool");
        assert_eq!(moved.target(), format!("/ann/tool/compare/{one}...{}", "2".repeat(40)));
        assert_eq!(push(3, Vec::new()).text(), "bob pushed 3 branches and tags to ann/tool");
    }
}
