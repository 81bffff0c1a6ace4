//! Activity of a user that the visitor may see.

use super::Side;
use crate::App;
use crate::feed;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::Shown;
use crate::respond;
use crate::show::sentence::Sentence;
use crate::visitor::Visitor;
use abide_forge::feeds::Feed;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, header};

#[derive(Template)]
#[template(path = "profile/activity.html")]
struct ActivityPage {
    frame: Frame,
    side: Side,
    sentences: Vec<Sentence>,
    links: Links,
}

/// `GET /{user}/activity`
pub(crate) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let side = Side::of(&app, &visitor, &page_path, "activity").await?;
    let path = format!("/{}/activity", side.name);
    let (sentences, links) = feed::page(&app, &visitor.caller(), Feed::Actor(side.user.id), &path, &page_path).await?;
    let frame = Frame::new(&app, &visitor, format!("Activity · {}", side.name));
    Ok(respond::page(&ActivityPage { frame, side, sentences, links }))
}

/// `GET /{user}/atom`
pub(crate) async fn atom(State(app): State<App>, visitor: Visitor, page_path: PagePath, headers: HeaderMap) -> Shown {
    let side = Side::of(&app, &visitor, &page_path, "activity").await?;
    let at = (format!("/{}/activity", side.name), format!("/{}/atom", side.name));
    let (title, known) = (format!("Activity of {}", side.name), headers.get(header::IF_NONE_MATCH));
    let feed = Feed::Actor(side.user.id);
    Ok(feed::atom(&app, &visitor.caller(), feed, title, (&at.0, &at.1), known).await?)
}
