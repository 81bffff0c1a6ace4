//! Repositories that a nostr key announces, with pushes authorised by signed states.

use super::client::{Client, Remote};
use super::io;
use super::server::{Repo, Server};
use crate::Failure;
use crate::nostr::Relay;
use crate::nostr::events::{Keys, Secp, Tag, keys, sign};
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use abide_core::time::{Clock as _, SystemClock};
use abide_nostr::{Event, event, nip19};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Instant;

pub(crate) struct Signer {
    keys: Keys,
    secp: Secp,
    relay: RefCell<Relay>,
    /// Time of the last event in seconds; each event needs a later one.
    last: Cell<u64>,
    /// Time of publishing a state, which is not part of the measured pushes.
    states: RefCell<Samples>,
}

impl Signer {
    pub(crate) fn new(server: &Server) -> Result<Self, Failure> {
        let now = u64::try_from(SystemClock.now().micros() / 1_000_000).unwrap_or(0);
        Ok(Self {
            keys: keys(0),
            secp: Secp::new(),
            relay: RefCell::new(Relay::connect(server.address())?),
            // An hour ago, so that a thousand states in a minute do not get timestamps in the future.
            last: Cell::new(now - 3_600),
            states: RefCell::default(),
        })
    }

    fn npub(&self) -> String {
        nip19::npub(&self.keys.public_key())
    }

    pub(crate) fn remote(&self, server: &Server, name: &str) -> Remote {
        Remote { url: format!("http://{}/{}/{name}.git", server.address(), self.npub()), settings: Vec::new() }
    }

    /// Announces a repository and pushes a commit, which promotes it out of purgatory. The first state after it removes
    /// that commit's branch.
    pub(crate) fn create(&self, client: &Client, server: &Server, root: &Path, name: &str) -> Result<Repo, Failure> {
        let remote = self.remote(server, name);
        let relay = format!("ws://{}", server.address());
        self.publish(30_617, &[&["d", name], &["clone", &remote.url], &["relays", &relay]])?;
        let start = root.join(format!("start-{name}"));
        std::fs::create_dir_all(&start).map_err(io("make a repository"))?;
        client.text(&start, &["init", "-q", "--template=", "-b", "start", "."])?;
        let who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"];
        client.text(&start, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "start"]].concat())?;
        let commit = client.text(&start, &["rev-parse", "HEAD"])?;
        self.allow(&remote, &[("refs/heads/start", &commit)])?;
        client.push_all(&start, &remote)?;
        let shown = server.cli(&["repo", "show", &format!("{}/{name}", self.npub()), "--json"], "")?;
        let id = serde_json::from_str::<Value>(&shown).ok().and_then(|repo| repo["id"].as_i64());
        id.map(|id| Repo::new(id, name)).ok_or_else(|| Failure::failed(format!("no repository was made: {shown}")))
    }

    /// Publishes the state that authorises the next push. The reference needs none.
    pub(crate) fn allow(&self, remote: &Remote, refs: &[(&str, &str)]) -> Result<(), Failure> {
        let Some((_, path)) = remote.url.split_once(&format!("/{}/", self.npub())) else { return Ok(()) };
        let name = path.trim_end_matches(".git");
        let mut tags: Vec<Vec<&str>> = vec![vec!["d", name]];
        tags.extend(refs.iter().map(|(name, oid)| vec![*name, *oid]));
        tags.push(vec!["HEAD", "ref: refs/heads/main"]);
        let start = Instant::now();
        self.publish(30_618, &tags.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        self.states.borrow_mut().push(start.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    fn publish(&self, kind: u16, tags: &[&[&str]]) -> Result<(), Failure> {
        self.last.set(self.last.get() + 1);
        let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).expect("a tag has a name"));
        let event: Event = sign(&self.secp, &self.keys, kind, self.last.get(), tags, "");
        let mut relay = self.relay.borrow_mut();
        relay.send(format!("[\"EVENT\",{}]", event::to_json(&event)))?;
        let answer = relay.read()?;
        match answer.contains(",true,") {
            true => Ok(()),
            false => Err(Failure::failed(format!("the relay does not take an event of kind {kind}: {answer}"))),
        }
    }

    pub(crate) fn report_to(self, report: &mut Report) {
        report.add(Line::new("publishing a state", Unit::Milliseconds, self.states.into_inner()));
    }
}
