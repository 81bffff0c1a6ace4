//! Rounds against the server's session end with all of the relay's events.

use super::network::{Fault, MemoryRelay, Network, Reconciles};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn network(relay: Vec<Event>, own: &[Event]) -> Network {
    Network::new(session(Capability::Unknown), MemoryRelay::new(relay), own)
}

fn bytes(network: &Network) -> usize {
    network.reconciliation.iter().map(String::len).sum()
}

#[test]
fn ten_thousand_missing_events_take_one_exchange_of_less_than_a_mebibyte() {
    let events = row(10_000);
    let mut network = network(events, &[]);
    let report = network.round(&[]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.events, network.lacks(), network.delivered), (10_000, 0, 10_000));
    assert!(bytes(&network) <= 1 << 20, "{}", bytes(&network));
    let opened = network.reconciliation.iter().filter(|frame| frame.starts_with("[\"NEG-OPEN\"")).count();
    assert_eq!(opened, 1);
    assert_eq!(network.requests, 50, "batches of 200");
    assert_eq!(network.learned, [Capability::Negentropy]);
}

#[test]
fn equal_sets_of_ten_thousand_cost_less_than_a_kibibyte() {
    let events = row(10_000);
    let mut network = network(events.clone(), &events);
    let report = network.round(&[]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.events, report.lacking, network.requests), (0, 0, 0));
    assert!(bytes(&network) <= 1 << 10, "{}", bytes(&network));
}

#[test]
fn fifty_thousand_events_never_need_a_frame_above_the_limit() {
    let events = row(50_000);
    let own: Vec<Event> = events.iter().enumerate().filter(|(n, _)| n % 1_000 != 7).map(|(_, e)| e.clone()).collect();
    let mut network = network(events, &own);
    let report = network.round(&[]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.events, network.lacks()), (50, 0));
    let longest = network.reconciliation.iter().map(String::len).max().unwrap();
    assert!(longest <= 2 * 60_000 + 100, "{longest}");
    let opened = network.reconciliation.iter().filter(|frame| frame.starts_with("[\"NEG-OPEN\"")).count();
    assert_eq!(opened, 3, "windows of 20,000");
}

#[test]
fn events_that_only_we_have_are_counted_and_not_sent() {
    let mut network = network(row(100), &row(150));
    let report = network.round(&[]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.lacking, report.events, network.delivered), (50, 0, 0));
}

#[test]
fn each_refusal_of_reconciliation_leads_to_paging_and_is_learned() {
    for reconciles in
        [Reconciles::Notice, Reconciles::Closed, Reconciles::NegErr, Reconciles::Silence, Reconciles::HangsUp]
    {
        let mut network = network(row(1_700), &row(100));
        network.relay.reconciles = reconciles;
        let report = network.round(&[]);
        assert!(report.is_complete(), "{reconciles:?} {report:?}");
        assert_eq!((network.lacks(), network.delivered), (0, 1_700), "{reconciles:?}");
        assert_eq!(network.learned, [Capability::PagingOnly], "{reconciles:?}");
        let seconds = network.now.since(NOW).as_secs();
        assert_eq!(seconds, if reconciles == Reconciles::Silence { 10 } else { 0 }, "{reconciles:?}");
        let report = network.round(&[]);
        assert!(report.is_complete(), "what was learned costs no time: {report:?}");
        assert_eq!(network.now.since(NOW).as_secs(), seconds);
    }
}

#[test]
fn a_second_with_more_events_than_a_page_is_reported() {
    let crowd = (0..700).map(|n| unsigned(1, 50, &n.to_string()));
    let events: Vec<Event> = row(100).into_iter().chain(crowd).collect();
    let mut paged = network(events.clone(), &[]);
    paged.relay.reconciles = Reconciles::Notice;
    let report = paged.round(&[]);
    assert_eq!((report.crowded_seconds, &report.outcome), (1, &RoundOutcome::Finished));
    assert!(!report.is_complete());
    // One page of the second, with the event of that second in the row.
    assert_eq!(paged.delivered, 99 + 500);
    let mut compared = network(events, &[]);
    assert!(compared.round(&[]).is_complete());
    assert_eq!(compared.lacks(), 0);
}

/// A set of events: for each second, which of three exist on which side.
fn sets() -> impl Strategy<Value = Vec<(u64, [u8; 3])>> {
    let sides = prop::array::uniform3(0_u8..4);
    prop::collection::btree_map(0_u64..60, sides, 0..40).prop_map(|map: BTreeMap<_, _>| map.into_iter().collect())
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        4 => Just(Fault::None),
        1 => Just(Fault::Doubled),
        1 => Just(Fault::Lost),
        1 => (0_usize..20).prop_map(Fault::Late),
    ];
    prop::collection::vec(fault, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the network does, a round with an honest relay ends with the union of both sides.
    #[test]
    fn a_round_with_an_honest_relay_ends_with_the_union(
        sets in sets(),
        faults in faults(),
        cap in 4_usize..12,
        window_items in 2_usize..40,
        wanted in 1_usize..60,
        reconciles in prop::sample::select(vec![
            Reconciles::Yes,
            Reconciles::Yes,
            Reconciles::Yes,
            Reconciles::Notice,
            Reconciles::Closed,
            Reconciles::NegErr,
            Reconciles::Silence,
            Reconciles::HangsUp,
        ]),
        known in prop::sample::select(vec![Capability::Unknown, Capability::Negentropy, Capability::PagingOnly]),
    ) {
        let (mut theirs, mut ours) = (vec![unsigned(2, 3, "of another layer")], Vec::new());
        for (age, sides) in sets {
            for (n, side) in sides.into_iter().enumerate() {
                let event = unsigned(1, age, &n.to_string());
                if side & 1 != 0 { theirs.push(event.clone()); }
                if side & 2 != 0 { ours.push(event); }
            }
        }
        let of_layer = theirs.iter().filter(|event| layer().matches(event));
        let union: BTreeSet<_> = ours.iter().chain(of_layer).map(item).collect();
        let limits = ClientLimits { window_items, wanted, ..ClientLimits::default() };
        let mut network = Network::new(ClientSession::new(limits, known), MemoryRelay::new(theirs), &ours);
        network.relay.cap = cap;
        network.relay.reconciles = reconciles;
        let report = network.round(&faults);
        prop_assert!(report.is_complete(), "{:?}", report);
        prop_assert_eq!(&network.own, &union);
        prop_assert_eq!(network.client.spent().lies, 0);
        // A second round finds nothing new.
        prop_assert!(network.round(&[]).is_complete());
        prop_assert_eq!(&network.own, &union);
    }
}
