//! Events per second, compared with bare signature checks before and after in the same run.

use super::client::Client;
use super::events::Batch;
use super::{Args, Site};
use crate::Failure;
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use abide_nostr::{Event, verify_signature};
use std::time::Instant;

/// Unanswered events per connection.
const WINDOW: usize = 400;

pub(crate) fn measure(
    engine: &str,
    site: &Site,
    batch: &Batch,
    args: &Args,
    report: &mut Report,
) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut one, mut all) = (Samples::default(), Samples::default());
    one.push(verified(&batch.events, 1));
    all.push(verified(&batch.events, cores));
    let frames: Vec<String> =
        batch.events.iter().map(|event| format!("[\"EVENT\",{}]", abide_nostr::event::to_json(event))).collect();
    let share = frames.len().div_ceil(args.connections as usize);
    let start = Instant::now();
    let done: Result<Vec<()>, Failure> = std::thread::scope(|scope| {
        let address = site.server.address();
        let sending = frames.chunks(share).map(|part| scope.spawn(move || publish(address, part)));
        let sending: Vec<_> = sending.collect();
        sending
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::failed("a client died"))))
            .collect()
    });
    done?;
    let rate = Samples::of(frames.len() as f64 / start.elapsed().as_secs_f64());
    one.push(verified(&batch.events, 1));
    all.push(verified(&batch.events, cores));
    let line = |what: &str| Line::new(format!("{engine}, events, beside {what}"), Unit::PerSecond, rate.clone());
    report.add(line("checking signatures").beside(Some(one)));
    report.add(line(&format!("checking signatures on {cores} cores")).beside(Some(all)));
    Ok(())
}

/// Signature checks per second on `threads` threads.
fn verified(events: &[Event], threads: usize) -> f64 {
    let sample = &events[..events.len().min(10_000)];
    let start = Instant::now();
    std::thread::scope(|scope| {
        for part in sample.chunks(sample.len().div_ceil(threads)) {
            scope.spawn(move || assert!(part.iter().all(verify_signature)));
        }
    });
    sample.len() as f64 / start.elapsed().as_secs_f64()
}

/// Publishes frames and reads an answer for each.
fn publish(address: &str, frames: &[String]) -> Result<(), Failure> {
    let mut client = Client::connect(address)?;
    let (mut sent, mut answered) = (0, 0);
    while answered < frames.len() {
        while sent < frames.len() && sent - answered < WINDOW {
            client.put(frames[sent].clone())?;
            sent += 1;
        }
        client.flush()?;
        // Waits for a quarter of the window, so that frames are sent together.
        let wanted = (answered + WINDOW / 4).min(sent);
        while answered < wanted {
            let answer = client.read()?;
            if !answer.ends_with(",true,\"\"]") {
                return Err(Failure::failed(format!("an event was not taken: {answer}")));
            }
            answered += 1;
        }
    }
    Ok(())
}
