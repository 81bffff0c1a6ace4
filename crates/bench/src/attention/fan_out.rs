//! Cost of notifying many people of an event.

use super::{Args, Site, Stop};
use crate::Failure;
use crate::common::site::{self, failed};
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use abide_forge::consumers;
use abide_forge::issues::create;
use std::time::Instant;

/// Events between two measurements.
const PIECE: u32 = 20;

pub(crate) async fn measure(
    engine: &str,
    site: &Site,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let (forge, _) = site::open(&site.options, &site.data).await?;
    consumers::register(&forge, &consumers::all()).await.map_err(failed)?;
    let owner = site::person(&forge, "owner").await?;
    let repo = site::repo(&forge, &owner, "busy").await?;
    let mut link = site.bare.connect().await?;
    let first = owner.user_id().map_or(0, |id| id.get()) + 1;
    let last = first + i64::from(args.watchers) - 1;
    let mut people = (first..=last).map(|n| format!("({n}, 'p{n}', 0, 0)")).collect::<Vec<_>>();
    while !people.is_empty() {
        let some = people.split_off(people.len().saturating_sub(500)).join(", ");
        let ids = if matches!(link, crate::common::bare::Link::Postgres(_)) { " OVERRIDING SYSTEM VALUE" } else { "" };
        link.run(&format!("INSERT INTO users (id, name, created_at, updated_at){ids} VALUES {some}"))
            .await
            .map_err(failed)?;
    }
    link.run(&format!(
        "INSERT INTO watches (user_id, repo_id, level, updated_at) SELECT id, {}, 'all', 0 FROM users WHERE id >= {first}",
        repo.id
    ))
    .await
    .map_err(failed)?;
    link.close().await;
    // Earlier events are not part of the measurement.
    consumers::catch_up(&forge).await.map_err(failed)?;
    let mut samples = Samples::default();
    let mut done = 0;
    while done < args.rounds {
        stop.check()?;
        for number in 0..PIECE {
            let request = create::Request { title: format!("Something {number}"), ..create::Request::default() };
            create::create(&forge, &owner, &repo, request).await.map_err(failed)?;
        }
        let start = Instant::now();
        consumers::catch_up(&forge).await.map_err(failed)?;
        samples.push(f64::from(PIECE) / start.elapsed().as_secs_f64());
        done += PIECE;
    }
    let case = format!("{engine}, events to {} watchers", args.watchers);
    report.add(Line::new(case, Unit::PerSecond, samples));
    forge.close().await;
    Ok(())
}
