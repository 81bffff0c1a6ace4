//! What happened, in words: for feeds on pages and for feed readers.

use super::text::readable;
use abide_core::feed::Told;
use abide_forge::feeds::Item;
use serde_json::Value as Json;

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it stands.
    Text(String),
    /// Leads somewhere: what it says, and where.
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

/// Something that happened, as a sentence whose first word is who did it.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub icon: &'static str,
    pub pieces: Vec<Piece>,
    /// The beginning of what was written, if something was.
    pub excerpt: String,
    /// The newest commits that were pushed.
    pub commits: Vec<Line>,
    pub item: Item,
}

impl Sentence {
    pub(crate) fn of(item: Item) -> Self {
        let payload: Json = serde_json::from_str(&item.payload).unwrap_or_default();
        let mut pieces = vec![match &item.actor {
            Some((_, name)) => Piece::Link(name.shown().into_owned(), format!("/{name}")),
            None => match payload["author"].as_str() {
                Some(npub) => Piece::Text(readable(npub)),
                None => Piece::Text("The operator".into()),
            },
        }];
        pieces.extend(deed(&item, &payload));
        let excerpt = item.excerpt.clone();
        Self { icon: icon(item.told), pieces, excerpt, commits: commits(&item, &payload), item }
    }

    /// The sentence without links.
    pub(crate) fn text(&self) -> String {
        let words = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Link(text, _) => text.as_str(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The address of the object of the sentence; without one, of its subject.
    pub(crate) fn target(&self) -> &str {
        let leads = |piece: &Piece| matches!(piece, Piece::Link(..));
        let place = self.pieces.iter().skip(1).position(leads).map_or(0, |place| place + 1);
        match self.pieces.get(place) {
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

fn commits(item: &Item, payload: &Json) -> Vec<Line> {
    let slug = item.repo.as_ref().map(|repo| repo.slug()).unwrap_or_default();
    let refs = payload["refs"].as_array().into_iter().flatten();
    let told = refs.flat_map(|told| told["commits"].as_array().into_iter().flatten());
    let line = |commit: &Json| {
        let id = commit["id"].as_str()?;
        Some(Line {
            short: id.chars().take(7).collect(),
            subject: commit["message"].as_str().unwrap_or_default().to_owned(),
            page: format!("/{slug}/commit/{id}"),
        })
    };
    told.filter_map(line).take(COMMITS).collect()
}

fn icon(told: Told) -> &'static str {
    match told {
        Told::Star => "i-star",
        Told::RepoForked => "i-fork",
        Told::Push => "i-branch",
        Told::Follow => "i-eye",
        Told::IssueCreated | Told::IssueClosed | Told::IssueReopened | Told::IssueCommented => "i-issue",
        Told::PrOpened
        | Told::PrCommented
        | Told::PrSynchronized
        | Told::PrClosed
        | Told::PrMerged
        | Told::PrReopened => "i-branch",
        _ => "i-repo",
    }
}

/// What they did, behind their name.
fn deed(item: &Item, payload: &Json) -> Vec<Piece> {
    let slug = item.repo.as_ref().map(|repo| repo.slug()).unwrap_or_default();
    let repo = || Piece::Link(readable(&slug), format!("/{slug}"));
    let word = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
    let text = |words: &str| Piece::Text(words.to_owned());
    let about = |verb: &str| vec![text(verb), repo()];
    let issue = |verb: &str| {
        let (number, title) = (payload["number"].as_i64().unwrap_or_default(), &item.title);
        if let Some(thread) = payload["thread"].as_str() {
            return vec![text(verb), Piece::Link(title.clone(), format!("/{slug}/nostr/{thread}")), text("in"), repo()];
        }
        let link = Piece::Link(format!("#{number} {title}").trim_end().to_owned(), format!("/{slug}/issues/{number}"));
        vec![text(verb), link, text("in"), repo()]
    };
    match item.told {
        Told::RepoCreated => about("created"),
        Told::RepoForked => about("forked a repository as"),
        Told::Star => about("starred"),
        Told::RepoArchived => about("archived"),
        Told::RepoUnarchived => about("unarchived"),
        Told::RepoRestored => about("restored"),
        Told::RepoRenamed => vec![text(&format!("renamed {} to", word("old_name"))), repo()],
        Told::RepoTransferred => {
            let verb = if item.actor.is_some() { "accepted the transfer of" } else { "transferred" };
            vec![text(verb), repo(), text(&format!("from {}", readable(&word("from"))))]
        }
        Told::RepoVisibilityChanged => vec![text("made"), repo(), text(&word("after"))],
        Told::Follow => {
            let name = word("user");
            vec![text("follows"), Piece::Link(readable(&name), format!("/{name}"))]
        }
        Told::IssueCreated => issue("opened"),
        Told::IssueClosed => issue("closed"),
        Told::IssueReopened => issue("reopened"),
        Told::IssueCommented | Told::PrCommented => issue("commented on"),
        Told::PrOpened => issue("opened"),
        Told::PrSynchronized => issue("updated"),
        Told::PrClosed => issue("closed"),
        Told::PrMerged => issue("merged"),
        Told::PrReopened => issue("reopened"),
        Told::Push => pushed(payload, &slug, repo()),
    }
}

fn pushed(payload: &Json, slug: &str, repo: Piece) -> Vec<Piece> {
    let text = |words: String| Piece::Text(words);
    let count = payload["ref_count"].as_u64().unwrap_or_default();
    let [only] = payload["refs"].as_array().map_or(&[][..], Vec::as_slice) else {
        return vec![text(format!("pushed {count} branches and tags to")), repo];
    };
    let (name, before, after) = (&only["name"], &only["before"], &only["after"]);
    let name = name.as_str().unwrap_or_default();
    let (kind, short) = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(branch), _) => ("branch", branch),
        (_, Some(tag)) => ("tag", tag),
        _ => ("ref", name),
    };
    let none = |id: &Json| id.as_str().is_none_or(|id| id.bytes().all(|byte| byte == b'0'));
    let path: String = form_urlencoded::byte_serialize(short.as_bytes()).collect::<String>().replace("%2F", "/");
    let shown = Piece::Link(short.to_owned(), format!("/{slug}/tree/{}", path.replace('+', "%20")));
    match (none(before), none(after)) {
        (_, true) => vec![text(format!("deleted {kind} {short} in")), repo],
        (true, _) => vec![text(format!("created {kind}")), shown, text("in".into()), repo],
        _ => {
            let (before, after) = (before.as_str().unwrap_or_default(), after.as_str().unwrap_or_default());
            let changes = Piece::Link(short.to_owned(), format!("/{slug}/compare/{before}...{after}"));
            vec![text("pushed to".into()), changes, text("in".into()), repo]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::{Handle, RepoId, Timestamp, UserId};
    use abide_forge::feeds::Place;
    use serde_json::json;

    fn handle(text: &str) -> Handle {
        Handle::from_stored(text.to_owned())
    }

    fn told(told: Told, payload: Json) -> Sentence {
        let place = Place { id: RepoId::new(1), owner: handle("ann"), name: "tool".parse().unwrap(), identifier: None };
        Sentence::of(Item {
            seq: 1,
            told,
            actor: Some((UserId::new(1), handle("bob"))),
            repo: (told != Told::Follow).then_some(place),
            public: true,
            payload: payload.to_string(),
            title: String::new(),
            excerpt: String::new(),
            at: Timestamp::from_micros(0),
        })
    }

    #[test]
    fn everything_that_is_told_has_words_and_leads_somewhere() {
        for &kind in Told::ALL {
            let sentence = told(kind, json!({}));
            assert!(sentence.text().starts_with("bob "), "{kind}");
            assert!(sentence.text().split(' ').count() > 1, "{kind}");
            assert!(sentence.target().starts_with('/'), "{kind}");
        }
    }

    #[test]
    fn a_push_shows_its_newest_commits() {
        let commit = |digit: &str| json!({ "id": digit.repeat(40), "message": format!("change {digit}") });
        let refs = json!([
            { "name": "refs/heads/main", "commits": [commit("4"), commit("3")] },
            { "name": "refs/heads/next", "commits": [commit("2"), commit("1")] },
        ]);
        let shown = told(Told::Push, json!({ "ref_count": 2, "refs": refs })).commits;
        let subjects: Vec<_> = shown.iter().map(|line| line.subject.as_str()).collect();
        assert_eq!(subjects, ["change 4", "change 3", "change 2"]);
        assert_eq!(
            (shown[0].short.as_str(), &shown[0].page),
            ("4444444", &format!("/ann/tool/commit/{}", "4".repeat(40)))
        );
        assert_eq!(told(Told::Star, json!({})).commits, []);
    }

    #[test]
    fn a_push_says_what_became_of_the_branch() {
        let zero = "0".repeat(40);
        let one = "1".repeat(40);
        let push = |name: &str, before: &str, after: &str| {
            let refs = json!([{ "name": name, "before": before, "after": after }]);
            told(Told::Push, json!({ "ref_count": 1, "refs": refs }))
        };
        let made = push("refs/heads/a/b c", &zero, &one);
        assert_eq!(
            (made.text().as_str(), made.target()),
            ("bob created branch a/b c in ann/tool", "/ann/tool/tree/a/b%20c")
        );
        assert_eq!(push("refs/tags/v1", &one, &zero).text(), "bob deleted tag v1 in ann/tool");
        let moved = push("refs/heads/main", &one, &"2".repeat(40));
        assert_eq!(moved.text(), "bob pushed to main in ann/tool");
        assert_eq!(moved.target(), format!("/ann/tool/compare/{one}...{}", "2".repeat(40)));
        assert_eq!(
            told(Told::Push, json!({ "ref_count": 3, "refs": [] })).text(),
            "bob pushed 3 branches and tags to ann/tool"
        );
    }
}
