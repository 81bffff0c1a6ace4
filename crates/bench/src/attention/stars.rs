//! Stars per second, through the use case and by bare SQL.

use super::{Args, Site, Stop};
use crate::Failure;
use crate::common::bare::Link;
use crate::common::site::{self, failed};
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use crate::store::per_second;
use abide_core::Clock as _;
use abide_core::time::SystemClock;
use abide_forge::attention::star;
use abide_store::{Engine, all_statements};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Pieces of a measurement, which alternate with those of the other side.
const PIECES: u32 = 4;
/// Repositories per worker.
const REPOS: usize = 64;
const CROWD: usize = 8;

pub(crate) async fn measure(
    engine: &str,
    site: &Site,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let (forge, _) = site::open(&site.options, &site.data).await?;
    let owner = site::person(&forge, "owner").await?;
    let mut people = Vec::new();
    for worker in 0..CROWD * 2 {
        people.push(site::person(&forge, &format!("fan{worker}")).await?);
    }
    let mut repos = Vec::new();
    for number in 0..REPOS {
        repos.push(site::repo(&forge, &owner, &format!("r{number}")).await?);
    }
    let (people, repos) = (Arc::new(people), Arc::new(repos));
    let statements = Statements::find(site.bare.engine())?;
    let mut links = Vec::new();
    for _ in 0..if site.bare.engine() == Engine::Sqlite { 1 } else { CROWD } {
        links.push(Arc::new(Mutex::new(site.bare.connect().await?)));
    }
    let piece = Duration::from_secs(args.seconds) / PIECES;
    for writers in [1, CROWD] {
        let [mut ours, mut bare] = <[Samples; 2]>::default();
        for _ in 0..PIECES {
            stop.check()?;
            let through = per_second(writers, piece, |worker, end| {
                let (forge, people, repos) = (forge.clone(), people.clone(), repos.clone());
                async move {
                    let mut turn = 0;
                    while Instant::now() < end {
                        let repo = &repos[(worker * 7 + turn) % REPOS];
                        // Odd rounds star, even rounds unstar.
                        match turn / REPOS % 2 {
                            0 => star::star(&forge, &people[worker], repo).await.map_err(failed)?,
                            _ => star::unstar(&forge, &people[worker], repo).await.map_err(failed)?,
                        };
                        turn += 1;
                    }
                    Ok(turn)
                }
            });
            ours.push(through.await?);
            // SQLite lets one write at a time: more connections would only wait.
            let floor = per_second(writers.min(links.len()), piece, |worker, end| {
                let (link, repos) = (links[worker].clone(), repos.clone());
                // Different users than those of the use case, so that neither side undoes the rows of the other.
                let user = people[CROWD + worker].user_id().map_or(0, |id| id.get());
                async move {
                    let mut link = link.lock().await;
                    let mut turn = 0;
                    while Instant::now() < end {
                        let repo = repos[(worker * 7 + turn) % REPOS].id.get();
                        let add = (turn / REPOS).is_multiple_of(2);
                        link.begin().await.map_err(failed)?;
                        unit(&mut link, &statements, user, repo, add).await.map_err(failed)?;
                        link.commit().await.map_err(failed)?;
                        turn += 1;
                    }
                    Ok(turn)
                }
            });
            bare.push(floor.await?);
        }
        let line = Line::new(format!("{engine}, stars, {writers} writing"), Unit::PerSecond, ours);
        report.add(line.beside(Some(bare)));
    }
    forge.close().await;
    Ok(())
}

#[derive(Clone, Copy)]
struct Statements {
    add: &'static str,
    remove: &'static str,
    event: &'static str,
    audit: &'static str,
}

impl Statements {
    fn find(engine: Engine) -> Result<Self, Failure> {
        let text = |module, name| {
            let found = all_statements().find(|(of, sql)| *of == module && sql.name == name);
            found
                .map(|(_, sql)| sql.text(engine))
                .ok_or_else(|| Failure::failed(format!("the store has no statement {module}::{name} any more")))
        };
        Ok(Self {
            add: text("stars", "ADD")?,
            remove: text("stars", "REMOVE")?,
            event: text("events", "INSERT")?,
            audit: text("audit", "INSERT")?,
        })
    }
}

/// A macro, because the drivers' types have no common ones to write a function for.
macro_rules! rows {
    ($conn:expr, $statements:expr, $user:expr, $repo:expr, $add:expr) => {{
        let now = SystemClock.now().micros();
        let (kind, text) = if $add { ("star", $statements.add) } else { ("unstar", $statements.remove) };
        let star = sqlx::query(text).bind($user).bind($repo);
        let star = if $add { star.bind(now) } else { star };
        star.execute(&mut *$conn).await?;
        let payload = r#"{"repo_id":1,"slug":"owner/r1"}"#;
        let event = sqlx::query($statements.event).bind($user).bind(kind).bind($repo).bind("repo").bind($repo);
        event.bind(true).bind(payload).bind(now).bind(true).execute(&mut *$conn).await?;
        let audit = sqlx::query($statements.audit).bind($user).bind(kind).bind(None::<i64>).bind("127.0.0.1");
        audit.bind(payload).bind(now).execute(&mut *$conn).await?;
        Ok(())
    }};
}

async fn unit(link: &mut Link, statements: &Statements, user: i64, repo: i64, add: bool) -> Result<(), sqlx::Error> {
    match link {
        Link::Sqlite(conn) => rows!(conn, statements, user, repo, add),
        Link::Postgres(conn) => rows!(conn, statements, user, repo, add),
    }
}
