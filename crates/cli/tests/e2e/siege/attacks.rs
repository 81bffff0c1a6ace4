//! Every attack: the weakness it is after, the address it comes from, and how far it has to get for the siege to count.

use super::honest::Honest;
use super::tally::Tally;
use super::{MEASURED, asking, browsing, holding, memory, pushing, relay, telling, threads};
use crate::git::bombs;
use crate::grasp::setup::{npub, state};
use crate::support::{person, query};
use abide_testkit::{GitClient, Key, Nostr, Server};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An attack that goes on until the siege is over.
pub struct Attack {
    pub name: &'static str,
    /// The last part of the loopback address it comes from.
    from: u8,
    /// The least number of tries that must reach the target, or of connections that must be held at once.
    least: u64,
    /// Whether each try takes so long that a siege of a few seconds does not wait for it.
    slow: bool,
    /// Whether it holds connections, rather than doing something over and over.
    holding: bool,
    run: fn(&Front),
}

/// Each attack has its own address; some share theirs with others.
pub const ALL: &[Attack] = &[
    again("H1 nested Markdown", 2, 4, asking::nested_markdown),
    hold("H2 silent fetches", 3, 40, holding::silent_fetches),
    hold("H2 answers not taken", 3, 8, holding::answers_not_taken),
    hold("answers not read", 12, 8, holding::answers_not_read),
    again("large answers", 12, 20, asking::large_answers),
    again("wide directories", 13, 20, browsing::wide_directories),
    hold("refs not read", 14, 1, browsing::refs_not_read),
    hold("H3 unfinished forms", 4, 190, holding::unfinished_forms),
    hold("H4 slow packs", 5, 16, holding::slow_packs),
    again("H4 huge trees", 5, 2, pushing::huge_trees),
    slow("H4 wide trees", 10, 2, pushing::wide_trees),
    again("H5 events of strangers", 6, 200, telling::events),
    again("H6 a suspended account", 7, 10, telling::suspended),
    again("M3 blame and history", 8, 10, asking::blame),
    slow("blame of a large past", 20, 4, memory::blame_of_a_large_past),
    hold("half-read downloads", 21, 2, memory::half_read_downloads),
    slow("clones of nested trees", 22, 4, memory::nested_clones),
    again("M4 delta bombs", 9, 2, pushing::delta_bombs),
    slow("M4 bombs within bounds", 11, 1, pushing::lesser_bombs),
    hold("slow heads", 2, 100, holding::slow_heads),
    hold("sockets of the relay", 8, 40, holding::sockets),
    hold("unfinished messages", 15, 3, holding::unfinished_messages),
    hold("refused pushes", 19, 4, holding::refused_pushes),
    again("pull requests", 16, 20, relay::pull_requests),
    hold("pages of the relay not read", 17, 8, relay::pages_not_read),
    hold("reconciliations", 18, 8, relay::reconciliations),
    hold("SSH without a name", 7, 8, holding::ssh_connections),
    hold("more unfinished forms", 9, 100, holding::more_forms),
    slow("statuses of a stranger", 13, 50, threads::statuses),
    slow("readers of large comments", 14, 20, threads::readers),
];

const fn again(name: &'static str, from: u8, least: u64, run: fn(&Front)) -> Attack {
    Attack { name, from, least, slow: false, holding: false, run }
}

const fn slow(name: &'static str, from: u8, least: u64, run: fn(&Front)) -> Attack {
    Attack { slow: true, ..again(name, from, least, run) }
}

const fn hold(name: &'static str, from: u8, least: u64, run: fn(&Front)) -> Attack {
    Attack { holding: true, ..again(name, from, least, run) }
}

impl Attack {
    /// Whether it got far enough.
    pub fn counts(&self, tally: &Tally, siege: Duration) -> bool {
        (self.slow && siege < MEASURED) || tally.weight(self.holding) >= self.least
    }

    pub fn run(&self, target: &Target, tally: &Tally) {
        // On Linux this is the priority of this thread and of those that it starts.
        rustix::process::setpriority_process(None, 19).expect("a thread may yield");
        (self.run)(&Front { target, from: IpAddr::V4(Ipv4Addr::new(127, 0, 0, self.from)), tally });
    }
}

/// The progress of one attack.
#[derive(Clone, Copy)]
pub struct Front<'a> {
    pub target: &'a Target,
    pub from: IpAddr,
    pub tally: &'a Tally,
}

impl Front<'_> {
    pub fn is_over(&self) -> bool {
        self.target.over.load(Ordering::Relaxed)
    }
}

/// An object id that a signed state of the attacker names.
pub const TIP: &str = "1111111111111111111111111111111111111111";

/// Repositories of the attacker, so that pushes do not wait for each other.
pub const BAITS: usize = 8;

/// The targets of the attacks.
pub struct Target {
    pub over: AtomicBool,
    pub addr: SocketAddr,
    pub ssh: SocketAddr,
    pub url: String,
    /// A key without an account, and one whose account is suspended.
    pub key: Key,
    pub suspended: Key,
    /// Token of an account that owns nothing.
    pub reader: String,
    /// The repository of somebody else that gets issues.
    pub coordinate: String,
    pub kept: String,
    /// A commit of that repository.
    pub tip: String,
    /// Commits of a repository with a history, and the tip of one that is large.
    pub commits: Vec<String>,
    pub large: String,
    /// A blob that is large as JSON.
    pub blob: String,
    /// Commits with wide directories.
    pub wide: Vec<String>,
    /// A repository whose reading takes git memory.
    pub stored: memory::Stored,
    pub huge_tree: Vec<u8>,
    pub wide_tree: Vec<u8>,
    pub delta_bomb: Vec<u8>,
    pub lesser_bomb: Vec<u8>,
}

impl Target {
    /// Announces repositories of the attacker's key, with a state that allows a push, and one of a key that is suspended.
    pub fn prepare(server: &Server, honest: &Honest) -> Self {
        let (key, suspended) = (Key::new(666), Key::new(667));
        let mut relay = Nostr::connect(&server.url());
        for number in 0..BAITS {
            announce(server, &mut relay, &key, &bait(number), TIP);
        }
        let url = announce(server, &mut relay, &suspended, "gone", &honest.tip);
        GitClient::new().ok(&honest.work, &["push", "-q", &url, "main"]);
        query(server, &format!("UPDATE users SET suspended_at = 1 WHERE npub = '{}'", npub(&suspended)));
        Self {
            over: AtomicBool::new(false),
            addr: server.http_addr(),
            ssh: server.ssh_addr(),
            url: server.url(),
            key,
            suspended,
            reader: person(server, "mallory").token,
            coordinate: honest.key.coordinate("kept"),
            kept: format!("/{}/kept", npub(&honest.key)),
            tip: honest.tip.clone(),
            commits: honest.commits.clone(),
            large: honest.large.clone(),
            blob: honest.blob.clone(),
            wide: browsing::prepare(server, &honest.alice),
            stored: memory::prepare(server, &honest.alice),
            huge_tree: bombs::huge_tree(512 << 20),
            // Nearly as wide as a directory of a stranger may be.
            wide_tree: bombs::wide_tree(230_000),
            delta_bomb: bombs::delta_bomb(900, 3, 0),
            lesser_bomb: bombs::delta_bomb(26, 1, 1 << 20),
        }
    }

    /// Where pushes to a repository of the attacker go.
    pub fn push_path(&self, number: usize) -> String {
        format!("/{}/{}.git/git-receive-pack", npub(&self.key), bait(number % BAITS))
    }
}

fn bait(number: usize) -> String {
    format!("bait{number}")
}

fn announce(server: &Server, relay: &mut Nostr, key: &Key, name: &str, tip: &str) -> String {
    let clone = format!("{}/{}/{name}.git", server.url(), npub(key));
    let socket = server.url().replacen("http", "ws", 1);
    let tags: &[&[&str]] = &[&["d", name], &["clone", &clone], &["relays", &socket]];
    assert!(relay.publish(&key.event(Key::now() - 10, 30_617, tags, "")).0);
    assert!(relay.publish(&state(key, Key::now() - 5, name, &[("refs/heads/main", tip)], Some("main"))).0);
    clone
}
