//! Lying relays: they exhaust their budget, hold little memory, and never break the session.

use super::*;
use crate::client::budget::HOUR;
use proptest::prelude::*;
use serde_json::json;

/// Ids that a session with `wanted: 1_000` may hold: a page that is almost overfull and the events of its second, or a
/// list of wanted ids with one batch.
const HELD: usize = 1_000 + 20_000 + 1_000;

fn small() -> ClientLimits {
    let budget = Budget { events: 5_000, bytes: 4 << 20, lies: 20 };
    ClientLimits { budget, wanted: 1_000, ..ClientLimits::default() }
}

/// A lying relay and the owner of its client, which starts another round whenever one has ended.
struct Victim {
    client: ClientSession,
    now: Timestamp,
    /// Name of the last request, and whether it is a reconciliation.
    open: (String, bool),
    rest: Option<RestReason>,
    delivered: usize,
    most_held: usize,
}

impl Victim {
    fn new(capability: Capability) -> Self {
        let mut client = ClientSession::new(small(), capability);
        let mut wishes = client.on_connected(NOW);
        wishes.extend(client.subscribe("news", vec![layer()], None).unwrap());
        let open = (String::new(), false);
        let mut victim = Self { client, now: NOW, open, rest: None, delivered: 0, most_held: 0 };
        victim.grant(wishes);
        victim
    }

    fn grant(&mut self, mut wishes: Vec<Wish>) {
        if !self.client.has_round() && self.rest.is_none() {
            wishes.extend(self.client.start_round(layer(), self.now).unwrap());
        }
        self.most_held = self.most_held.max(self.client.held());
        for wish in wishes {
            match wish {
                Wish::Send(text) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if frame[0] == "REQ" || frame[0] == "NEG-OPEN" {
                        self.open = (frame[1].as_str().unwrap().to_owned(), frame[0] == "NEG-OPEN");
                    }
                }
                Wish::NeedItems { request, .. } => {
                    let items = row(40).iter().map(item).collect();
                    let wishes = self.client.on_items(request, items, self.now);
                    self.grant(wishes);
                }
                Wish::Event(event, _) => {
                    assert!(layer().matches(&event));
                    self.delivered += 1;
                }
                Wish::Rest(until, reason) => {
                    assert_eq!(until, self.now.plus(HOUR));
                    self.rest = Some(reason);
                }
                Wish::CaughtUp(_) | Wish::Unsubscribed(..) | Wish::Learned(_) | Wish::RoundEnded(_) => {}
            }
        }
    }

    fn frame(&mut self, frame: &str) {
        let wishes = self.client.on_message(frame, self.now);
        self.grant(wishes);
        assert!(self.most_held <= HELD);
    }

    fn tick(&mut self) {
        let Some(deadline) = self.client.deadline() else { return };
        self.now = deadline;
        let wishes = self.client.on_tick(deadline);
        self.grant(wishes);
    }

    /// Sends frames until the relay rests; returns their number and the reason.
    fn until_rest(&mut self, mut frame: impl FnMut(&(String, bool), usize) -> String) -> (usize, RestReason) {
        for n in 0..100_000 {
            let frame = frame(&self.open, n);
            self.frame(&frame);
            if let Some(reason) = self.rest {
                return (n + 1, reason);
            }
        }
        panic!("the relay never rests");
    }
}

#[test]
fn events_that_match_nothing_rest_the_relay() {
    for capability in [Capability::Unknown, Capability::PagingOnly] {
        let mut victim = Victim::new(capability);
        let rest = victim.until_rest(|open, n| event_frame(&open.0, &unsigned(2, 0, &n.to_string())));
        assert_eq!(rest, (21, RestReason::Lies(Lie::Unasked)));
        assert_eq!(victim.delivered, 0);
    }
}

#[test]
fn giant_and_broken_frames_rest_the_relay() {
    let giant = " ".repeat(2 << 20);
    let mut victim = Victim::new(Capability::Unknown);
    assert_eq!(victim.until_rest(|_, _| giant.clone()), (2, RestReason::Bytes));
    let mut victim = Victim::new(Capability::Unknown);
    let garbage =
        |_: &(String, bool), n: usize| ["{", "[\"EVENT\"]", "\u{0}", "[[[[", "[\"EOSE\",5]"][n % 5].to_owned();
    assert_eq!(victim.until_rest(garbage), (21, RestReason::Lies(Lie::Unreadable)));
}

#[test]
fn endless_events_without_an_end_rest_the_relay() {
    let mut victim = Victim::new(Capability::PagingOnly);
    let (frames, reason) = victim.until_rest(|open, n| event_frame(&open.0, &unsigned(1, n as u64, "")));
    assert_eq!(reason, RestReason::Events);
    assert_eq!(frames, 5_001);
    assert!(victim.most_held <= 2_000);
    // All in one second.
    let mut victim = Victim::new(Capability::PagingOnly);
    let (_, reason) = victim.until_rest(|open, n| event_frame(&open.0, &unsigned(1, 7, &n.to_string())));
    assert_eq!(reason, RestReason::Events);
}

#[test]
fn one_event_again_and_again_rests_the_relay_and_is_delivered_once() {
    let mut victim = Victim::new(Capability::PagingOnly);
    let event = unsigned(1, 7, "");
    let (_, reason) = victim.until_rest(|open, _| event_frame(&open.0, &event));
    assert_eq!((reason, victim.delivered), (RestReason::Events, 1));
}

#[test]
fn small_talk_rests_the_relay_in_the_end() {
    let mut victim = Victim::new(Capability::PagingOnly);
    let (frames, reason) = victim.until_rest(|_, _| r#"["NOTICE",""]"#.to_owned());
    assert_eq!((frames, reason), ((4 << 20) / 77 + 1, RestReason::Bytes));
}

#[test]
fn invented_ids_rest_the_relay() {
    let mut victim = Victim::new(Capability::Negentropy);
    let (_, reason) = victim.until_rest(|(name, compares), n| {
        if !compares {
            return json!(["EOSE", name]).to_string();
        }
        let ids: String = (0..100).map(|id| format!("{:064x}", n * 1_000 + id)).collect();
        format!("[\"NEG-MSG\",\"{name}\",\"6100000264{ids}\"]")
    });
    assert_eq!(reason, RestReason::Lies(Lie::Withheld));
}

/// A frame of a lying relay, written for the open request.
#[derive(Clone, Debug)]
enum Trick {
    Match,
    Foreign,
    Same,
    Eose,
    Closed,
    NegErr,
    NegMsg(Vec<u8>),
    NegIds(u8),
    Raw(String),
    Silence,
    HangUp,
}

fn trick() -> impl Strategy<Value = Trick> {
    prop_oneof![
        4 => Just(Trick::Match),
        1 => Just(Trick::Foreign),
        1 => Just(Trick::Same),
        2 => Just(Trick::Eose),
        1 => Just(Trick::Closed),
        1 => Just(Trick::NegErr),
        2 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Trick::NegMsg),
        2 => (0_u8..128).prop_map(Trick::NegIds),
        1 => any::<String>().prop_map(Trick::Raw),
        1 => Just(Trick::Silence),
        1 => Just(Trick::HangUp),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any frames in any order, the session neither panics nor holds many ids, and the relay never exceeds its
    /// budget.
    #[test]
    fn any_relay_stays_within_its_budget(
        tricks in prop::collection::vec(trick(), 0..200),
        capability in prop::sample::select(vec![Capability::Unknown, Capability::Negentropy, Capability::PagingOnly]),
    ) {
        let mut victim = Victim::new(capability);
        let mut forged = 0_u64;
        for (n, trick) in tricks.into_iter().enumerate() {
            let name = victim.open.0.clone();
            let neg_msg = |bytes: &[u8]| json!(["NEG-MSG", name, hex::encode(bytes)]).to_string();
            let frame = match trick {
                Trick::Match => event_frame(&name, &unsigned(1, n as u64 % 7, &n.to_string())),
                Trick::Foreign => event_frame(&name, &unsigned(2, 0, "")),
                Trick::Same => event_frame("s1", &unsigned(1, 0, "")),
                Trick::Eose => json!(["EOSE", name]).to_string(),
                Trick::Closed => json!(["CLOSED", name, "x"]).to_string(),
                Trick::NegErr => json!(["NEG-ERR", name, "x"]).to_string(),
                Trick::NegMsg(bytes) => neg_msg(&[&[0x61][..], &bytes].concat()),
                Trick::NegIds(count) => {
                    let ids = (0..count).flat_map(|id| {
                        let mut bytes = [id; 32];
                        bytes[..8].copy_from_slice(&n.to_be_bytes());
                        bytes
                    });
                    neg_msg(&[0x61, 0, 0, 2, count].into_iter().chain(ids).collect::<Vec<_>>())
                }
                Trick::Raw(text) => text,
                Trick::Silence => {
                    victim.tick();
                    continue;
                }
                Trick::HangUp => {
                    let mut wishes = victim.client.on_lost();
                    wishes.extend(victim.client.on_connected(victim.now));
                    victim.grant(wishes);
                    continue;
                }
            };
            victim.frame(&frame);
            forged = forged.max(victim.client.spent().lies);
            prop_assert!(victim.client.spent().lies <= 21);
            prop_assert!(victim.client.spent().events <= 5_001);
            if victim.rest.is_some() {
                let before = *victim.client.spent();
                victim.frame(&frame);
                prop_assert_eq!(victim.client.spent(), &before, "a resting relay is not listened to");
                return Ok(());
            }
        }
        prop_assert!(forged <= 20);
    }
}
