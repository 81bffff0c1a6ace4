//! The history of a branch, or of one path in it.

use super::head::{Head, Room, Shown};
use super::view::{CommitLine, Picker, Trail, tail};
use crate::App;
use crate::pages::frame::Frame;
use crate::pages::links::Links;
use crate::pages::path::Address;
use crate::pages::respond;
use crate::pages::visitor::Visitor;
use crate::show::text::{shown, url_path};
use abide_core::Timestamp;
use abide_forge::browse::Place;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/commits.html")]
struct CommitsPage {
    frame: Frame,
    head: Head,
    picker: Picker,
    trail: Trail,
    days: Vec<Day>,
    links: Links,
}

/// The commits of one day.
struct Day {
    date: String,
    commits: Vec<CommitLine>,
}

const PER_PAGE: usize = 30;

/// `GET /{owner}/{repo}/commits`
pub(super) async fn front(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    let place = room.browser.front().await?;
    page(&app, &room, place, &address).await
}

/// `GET /{owner}/{repo}/commits/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    let place = room.browser.place(&address.rest(3)).await?;
    page(&app, &room, place, &address).await
}

async fn page(app: &App, room: &Room, place: Place, address: &Address) -> Shown {
    let number = address.page();
    let log = room.browser.log(place.commit, &place.path, (number - 1) * PER_PAGE, PER_PAGE).await?;
    let title = match place.path.is_empty() {
        true => format!("Commits · {}", room.repo().shown()),
        false => format!("History of {} · {}", shown(&place.path), room.repo().shown()),
    };
    let head = room.head(app, "commits").await;
    let path = format!("{}/commits/{}{}", head.url, url_path(place.name().as_bytes()), tail(&place.path));
    Ok(respond::page(&CommitsPage {
        frame: Frame::new(app, &room.visitor, title),
        picker: Picker::of(room, &place, "commits"),
        trail: Trail::of(&place),
        days: by_day(log.commits.iter().map(CommitLine::from)),
        links: Links::around(&path, address, number, log.more),
        head,
    }))
}

fn by_day(commits: impl Iterator<Item = CommitLine>) -> Vec<Day> {
    let mut days: Vec<Day> = Vec::new();
    for commit in commits {
        let instant = Timestamp::from_micros(commit.time.saturating_mul(1_000_000)).to_string();
        let date = instant.split('T').next().unwrap_or_default().to_owned();
        match days.last_mut() {
            Some(day) if day.date == date => day.commits.push(commit),
            _ => days.push(Day { date, commits: vec![commit] }),
        }
    }
    days
}
