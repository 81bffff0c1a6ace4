//! The home feed of someone who watches a lot, over a long log.

use super::{Args, Site, Stop};
use crate::Failure;
use crate::common::site::{self, failed};
use crate::report::{Line, Report, Target, Unit};
use crate::samples::Samples;
use abide_forge::feeds::{self, Feed};
use abide_store::Engine;
use std::time::Instant;

const PEOPLE: u32 = 2_000;
const REPOS: u32 = 20_000;
const FOLLOWED: u32 = 50;
/// Reads of the feed, from its top and from further down.
const READS: u32 = 300;

pub(crate) async fn measure(
    engine: &str,
    site: &Site,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let (forge, _) = site::open(&site.options, &site.data).await?;
    let reader = site::person(&forge, "reader").await?;
    let id = reader.user_id().ok_or_else(|| Failure::failed("the reader has no account"))?;
    let mut link = site.bare.connect().await?;
    for text in filling(site.bare.engine(), id.get(), args) {
        stop.check()?;
        link.run(&text).await.map_err(failed)?;
    }
    link.close().await;
    let mut samples = <[Samples; 2]>::default();
    for round in 0..=READS {
        stop.check()?;
        // The log is spread evenly, so a fraction of it is as far down.
        let down = i64::from(args.events) * i64::from(round % 10 + 1) / 11;
        for (side, before) in [None, Some(down)].into_iter().enumerate() {
            let start = Instant::now();
            let page = feeds::read(&forge, &reader, Feed::Home(id), before, 30).await.map_err(failed)?;
            let took = start.elapsed();
            if page.items.len() < 30 {
                return Err(Failure::failed(format!(
                    "the feed has {} entries where 30 were asked for",
                    page.items.len()
                )));
            }
            if round > 0 {
                samples[side].push(took.as_secs_f64() * 1e3);
            }
        }
    }
    for (what, samples) in ["its top", "further down"].iter().zip(samples) {
        let p99 = Samples::of(samples.quantile(0.99));
        let line = Line::new(format!("{engine}, home feed, {what}, p99"), Unit::Milliseconds, p99);
        report.add(line.target(Target::Below(50.0)));
    }
    forge.close().await;
    Ok(())
}

/// Statements that fill a database: people, repositories, a log that is spread over them, and the reader of the feed.
fn filling(engine: Engine, reader: i64, args: &Args) -> Vec<String> {
    let numbers = |count: u32| match engine {
        Engine::Sqlite => {
            format!(
                "(WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < {count}) SELECT n FROM k)"
            )
        }
        Engine::Postgres => format!("(SELECT generate_series(CAST(1 AS BIGINT), {count}) AS n)"),
    };
    let (people, repos, events) = (numbers(PEOPLE), numbers(REPOS), numbers(args.events));
    let now = 1_700_000_000_000_000_i64;
    let mut all = vec![
        format!("INSERT INTO users (name, created_at, updated_at) SELECT 'p' || n, {now}, {now} FROM {people} k"),
        format!("INSERT INTO repo_ids (reserved_at) SELECT {now} FROM {repos} k"),
        format!(
            "INSERT INTO repos (id, owner_id, name, visibility, governance, default_branch, created_at, updated_at)
                SELECT n, n % {PEOPLE} + {reader} + 1, 'r' || n, 'public', 'account', 'refs/heads/main', {now}, {now} FROM {repos} k"
        ),
        // A few repositories get most events, as on a forge: the product of two random numbers favours low ids.
        format!(
            "INSERT INTO domain_events
                (seq, actor_user_id, kind, repo_id, source_kind, source_id, public, payload, created_at, told)
                SELECT n, (n * 7919) % {PEOPLE} + {reader} + 1, 'star', busy_repo, 'repo', busy_repo, TRUE, '{{\"repo_id\":1}}', {now} + n, TRUE
                FROM (SELECT n, CAST(((n * 48271) % 1000003) / 1000003.0 * ((n * 16807) % 1000033) / 1000033.0 * {REPOS} AS BIGINT) % {REPOS} + 1 AS busy_repo
                    FROM {events} k) spread"
        ),
        format!("UPDATE log_heads SET seq = {} WHERE name = 'events'", args.events),
        format!(
            "INSERT INTO watches (user_id, repo_id, level, updated_at)
                SELECT {reader}, id, 'all', {now} FROM repos ORDER BY (id * 7907) % 20011 LIMIT {}",
            args.watched
        ),
        format!(
            "INSERT INTO follows (follower_id, followed_id, followed_at)
                SELECT {reader}, id, {now} FROM users WHERE id <> {reader} ORDER BY (id * 7907) % 2003 LIMIT {FOLLOWED}"
        ),
        "ANALYZE".to_owned(),
    ];
    if engine == Engine::Postgres {
        // Without triggers: the counters are not measured, and a trigger per row takes minutes.
        all.insert(0, "SET session_replication_role = replica".to_owned());
    }
    all
}
