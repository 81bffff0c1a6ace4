//! Pages of relays that are small, crowded or cut off.

use super::*;
use crate::testing::event;
use proptest::prelude::*;

/// An event of kind 1 at this second.
fn at(second: i64, content: &str) -> Event {
    event(1, 1, second, &[], content)
}

fn paging() -> Paging {
    Paging::new(Filter { kinds: Some([1].into()), ..Filter::default() }, Window { since: 0, until: u64::MAX })
}

/// Serves the newest `cap` events of each request to its end; returns the new events of each page.
fn serve(paging: &mut Paging, events: &[Event], cap: usize) -> Vec<usize> {
    let mut pages = Vec::new();
    while let Some(filter) = paging.request() {
        pages.push(serve_page(paging, &filter, events, cap));
        assert_eq!(paging.on_end(), Ok(()));
        assert!(pages.len() < 1_000, "no end");
    }
    pages
}

fn serve_page(paging: &mut Paging, filter: &Filter, events: &[Event], cap: usize) -> usize {
    assert_eq!(filter.limit, PAGE);
    let mut matching: Vec<&Event> = events.iter().filter(|event| filter.matches(event)).collect();
    matching.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
    matching.truncate(cap);
    matching.into_iter().filter(|event| paging.on_event(event) == Ok(Seen::First)).count()
}

#[test]
fn an_empty_relay_takes_one_page() {
    let mut paging = paging();
    assert_eq!(serve(&mut paging, &[], 500), [0]);
    assert_eq!(paging.gaps(), Gaps::default());
}

#[test]
fn only_a_page_without_events_is_the_last() {
    let mut paging = paging();
    let events: Vec<Event> = (0..5).map(|second| at(second, "")).collect();
    assert_eq!(serve(&mut paging, &events, 500), [5, 0, 0]);
    assert_eq!((paging.gaps(), paging.held()), (Gaps::default(), 0));
}

#[test]
fn a_relay_may_serve_less_than_a_page() {
    let mut paging = paging();
    let events: Vec<Event> = (0..7).map(|second| at(second, "")).collect();
    // Each page begins with the last event of the page before.
    assert_eq!(serve(&mut paging, &events, 3), [3, 2, 2, 0, 0]);
    assert_eq!(paging.gaps(), Gaps::default());
}

#[test]
fn a_second_that_fills_an_answer_is_stepped_over_and_counted() {
    let crowd = (0..4).map(|n| at(5, &n.to_string()));
    let crowded: Vec<Event> = [at(9, ""), at(1, "")].into_iter().chain(crowd).collect();
    let mut paging = paging();
    assert_eq!(serve(&mut paging, &crowded, 3), [3, 1, 0, 1, 0, 0], "one of the second is not served");
    assert_eq!(paging.gaps().seconds, 1);
}

#[test]
fn a_crowded_newest_second_is_counted_once_older_events_prove_the_cut() {
    let crowd = (0..4).map(|n| at(5, &n.to_string()));
    let crowded: Vec<Event> = [at(1, "")].into_iter().chain(crowd).collect();
    let mut paging = paging();
    assert_eq!(serve(&mut paging, &crowded, 3), [3, 0, 1, 0, 0]);
    assert_eq!(paging.gaps().seconds, 1);
}

#[test]
fn a_crowded_oldest_second_is_counted_if_the_relay_is_known_to_cut() {
    let crowd = (0..4).map(|n| at(5, &n.to_string()));
    let crowded: Vec<Event> = [at(9, ""), at(8, ""), at(7, ""), at(6, "")].into_iter().chain(crowd).collect();
    let mut paging = paging();
    assert_eq!(serve(&mut paging, &crowded, 3), [3, 2, 2, 0, 0]);
    assert_eq!(paging.gaps().seconds, 1);
}

#[test]
fn a_page_that_is_cut_off_continues_at_its_oldest_event() {
    let events: Vec<Event> = (0..9).map(|second| at(second, "")).collect();
    let mut paging = paging();
    let filter = paging.request().unwrap();
    serve_page(&mut paging, &filter, &events, 4);
    assert!(paging.on_cut());
    let next = paging.request().unwrap();
    assert_eq!(next.until, Some(events[5].created_at.as_secs()));
    assert!(!paging.on_cut(), "nothing came");
    assert_eq!(serve(&mut paging, &events, 500), [5, 0, 0]);
    assert_eq!(paging.gaps(), Gaps::default());
}

#[test]
fn events_beside_the_request_are_lies() {
    let mut paging = paging();
    paging.request();
    assert_eq!(paging.on_event(&event(1, 2, 0, &[], "")), Err(Lie::Unasked));
    assert_eq!(paging.on_event(&at(3, "")), Ok(Seen::First));
    assert_eq!(paging.on_event(&at(3, "")), Ok(Seen::Again));
    let _ = paging.on_end();
    paging.request();
    assert_eq!(paging.on_event(&at(4, "")), Err(Lie::Unasked), "above until");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any times, cap and interruptions, all events are seen once, or a second is counted.
    #[test]
    fn nothing_is_lost_without_being_counted(
        times in prop::collection::vec(0_i64..12, 0..40),
        cap in 1_usize..8,
        cuts in prop::collection::vec(any::<bool>(), 0..20),
    ) {
        let events: Vec<Event> = times.iter().enumerate().map(|(n, second)| at(*second, &n.to_string())).collect();
        let mut paging = paging();
        let (mut first, mut steps) = (0, 0);
        let mut cuts = cuts.into_iter();
        while let Some(filter) = paging.request() {
            steps += 1;
            prop_assert!(steps < 500, "no end");
            first += serve_page(&mut paging, &filter, &events, cap);
            if cuts.next() == Some(true) {
                paging.on_cut();
            } else {
                let _ = paging.on_end();
            }
        }
        prop_assert!(first <= events.len());
        let count = |second: &i64| times.iter().filter(|time| *time == second).count();
        if times.iter().all(|second| count(second) < cap) {
            prop_assert_eq!((first, paging.gaps().seconds), (events.len(), 0));
        }
        // A crowded second with nothing older may hide that the relay cuts its answers.
        if times.iter().min().is_some_and(|oldest| count(oldest) < cap) {
            prop_assert!(first == events.len() || paging.gaps().seconds > 0);
        }
    }
}
