//! Queries over many stored events, and delivery of one new event to many subscriptions.

use super::client::Client;
use super::events::{Batch, filled};
use super::{Args, Site};
use crate::Failure;
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use serde_json::{Value, json};
use std::time::Instant;

const QUESTIONS: usize = 500;
const NEW_EVENTS: usize = 30;
const LISTENERS: usize = 20;

pub(crate) fn questions(engine: &str, site: &Site, batch: &Batch, report: &mut Report) -> Result<(), Failure> {
    let mut client = Client::connect(site.server.address())?;
    type Ask<'a> = &'a dyn Fn(usize) -> Value;
    let kinds: [(&str, Ask<'_>); 4] = [
        ("by id", &|number| json!({"ids": [batch.events[number % batch.events.len()].id]})),
        ("a repository's issues", &|number| json!({"kinds": [1621], "#a": [filled(number * 4).0], "limit": 100})),
        ("an author's newest", &|number| json!({"authors": [filled(number).1], "limit": 100})),
        ("the newest of the largest repository", &|_| json!({"kinds": [1111], "#a": [batch.repo], "limit": 100})),
    ];
    for (name, ask) in kinds {
        let mut times = Samples::default();
        for number in 0..QUESTIONS {
            let start = Instant::now();
            client.send(json!(["REQ", "q", ask(number)]).to_string())?;
            client.read_to("[\"EOSE\"")?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let p99 = times.quantile(0.99);
        report.add(Line::new(format!("{engine}, {name}, half of all within"), Unit::Milliseconds, times));
        report.add(Line::new(format!("{engine}, {name}, 99 % within"), Unit::Milliseconds, Samples::of(p99)));
    }
    Ok(())
}

/// Time from sending an event until the last subscription received it.
pub(crate) fn fan_out(
    engine: &str,
    site: &Site,
    batch: &Batch,
    args: &Args,
    report: &mut Report,
) -> Result<(), Failure> {
    let each = args.subscriptions as usize / LISTENERS;
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let mut client = Client::connect(site.server.address())?;
        for number in 0..each {
            let name = format!("s{number}");
            client.send(json!(["REQ", name, {"kinds": [1621], "#a": [batch.repo], "limit": 0}]).to_string())?;
            client.read_to("[\"EOSE\"")?;
        }
        listeners.push(client);
    }
    let mut writer = Client::connect(site.server.address())?;
    let mut times = Samples::default();
    for number in 0..NEW_EVENTS {
        let frame = format!("[\"EVENT\",{}]", abide_nostr::event::to_json(&batch.another(number)));
        let start = Instant::now();
        writer.send(frame)?;
        for client in &mut listeners {
            for _ in 0..each {
                client.read()?;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let case = format!("{engine}, one event to {} subscriptions", each * LISTENERS);
    report.add(Line::new(case, Unit::Milliseconds, times));
    Ok(())
}
