//! Transfer offers: received and sent ones, and the answers.
//!
//! The recipient sees the repository before they accept, also if they could not read it otherwise. Once an
//! offer has ended, the page shows only its result.

use super::Route;
use super::form::Form;
use super::frame::Frame;
use super::links::Links;
use super::member::Member;
use super::path::PagePath;
use super::problem::{Problem, sentence};
use super::respond;
use crate::App;
use crate::show::text;
use abide_core::policy::Action;
use abide_core::transfer::{Answer, Status};
use abide_core::{Handle, Timestamp};
use abide_forge::Caller;
use abide_forge::repos::transfer::{self, Offer};
use abide_forge::repos::{Class, LifeError, Page, Repo, open};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

const PER_PAGE: usize = 30;

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/transfers", get(inbox)),
        ("/transfers/{id}", get(show)),
        ("/transfers/{id}/accept", post(accept)),
        ("/transfers/{id}/decline", post(decline)),
        ("/transfers/{id}/cancel", post(cancel)),
    ]
}

#[derive(Template)]
#[template(path = "transfers/inbox.html")]
struct InboxPage {
    frame: Frame,
    section: &'static str,
    to_me: Vec<Card>,
    by_me: Vec<Card>,
    links: Links,
}

#[derive(Template)]
#[template(path = "transfers/offer.html")]
struct OfferPage {
    frame: Frame,
    section: &'static str,
    error: Option<String>,
    card: Card,
}

/// A transfer offer.
struct Card {
    id: i64,
    /// Name of the repository, now or when it was offered.
    slug: String,
    /// Name after the transfer.
    becomes: String,
    /// Whether the visitor may read the repository.
    readable: bool,
    from: String,
    to: String,
    /// Whether the visitor is the recipient.
    to_me: bool,
    waits: bool,
    /// Result of an ended offer, or empty.
    ended: &'static str,
    ended_at: Option<Timestamp>,
    expires_at: Timestamp,
    offered_at: Timestamp,
    size: String,
    repo: Repo,
}

impl Card {
    fn of(caller: &Caller, offer: Offer, now: Timestamp) -> Self {
        let name = |name: &Option<Handle>| name.as_ref().map(ToString::to_string).unwrap_or_default();
        let (status, Offer { transfer, repo }) = (offer.status(now), offer);
        let waits = status == Status::Pending;
        let (ended, ended_at) = match status {
            Status::Pending => ("", None),
            Status::Accepted => ("was accepted", transfer.decided_at),
            Status::Declined => ("was declined", transfer.decided_at),
            Status::Canceled => ("was cancelled", transfer.decided_at),
            Status::Expired => ("expired without an answer", Some(transfer.expires_at)),
        };
        Self {
            id: transfer.id.get(),
            slug: if waits { repo.slug() } else { transfer.slug },
            becomes: format!("{}/{}", name(&transfer.recipient_name), repo.name),
            readable: open::may(caller, &repo, Action::RepoRead),
            from: name(&transfer.from_name),
            to: name(&transfer.recipient_name),
            to_me: caller.user_id() == Some(transfer.recipient),
            waits,
            ended,
            ended_at,
            expires_at: transfer.expires_at,
            offered_at: transfer.created_at,
            size: text::size(u64::try_from(repo.size_bytes).unwrap_or(0)),
            repo,
        }
    }
}

/// `GET /transfers`
async fn inbox(State(app): State<App>, member: Member, page_path: PagePath) -> Result<Response, Problem> {
    let caller = &member.viewer.caller;
    let page = page_path.page();
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (offers, total) = transfer::inbox(&app.forge, caller, wanted).await?;
    let frame = Frame::new(&app, &member.visitor, "Transfers");
    let cards = offers.into_iter().map(|offer| Card::of(caller, offer, frame.now.0));
    let (to_me, by_me) = cards.partition(|card: &Card| card.to_me);
    let links = Links::around("/transfers", &page_path, page, total > (page * PER_PAGE) as i64);
    Ok(respond::page(&InboxPage { frame, section: "transfers", to_me, by_me, links }))
}

/// `GET /transfers/{id}`
async fn show(State(app): State<App>, member: Member, page_path: PagePath) -> Result<Response, Problem> {
    Ok(respond::page(&offer_page(&app, &member, &page_path, None).await?))
}

async fn offer_page(
    app: &App,
    member: &Member,
    page_path: &PagePath,
    error: Option<String>,
) -> Result<OfferPage, Problem> {
    let caller = &member.viewer.caller;
    let offer = transfer::see(&app.forge, caller, page_path.segment(1)).await?;
    let frame = Frame::new(app, &member.visitor, "Transfer offer");
    let card = Card::of(caller, offer, frame.now.0);
    Ok(OfferPage { frame, section: "transfers", error, card })
}

/// `POST /transfers/{id}/accept`
async fn accept(State(app): State<App>, member: Member, page_path: PagePath, _: Form) -> Result<Response, Problem> {
    answer(&app, &member, &page_path, Answer::Accept).await
}

/// `POST /transfers/{id}/decline`
async fn decline(State(app): State<App>, member: Member, page_path: PagePath, _: Form) -> Result<Response, Problem> {
    answer(&app, &member, &page_path, Answer::Decline).await
}

/// `POST /transfers/{id}/cancel`
async fn cancel(State(app): State<App>, member: Member, page_path: PagePath, _: Form) -> Result<Response, Problem> {
    answer(&app, &member, &page_path, Answer::Cancel).await
}

async fn answer(app: &App, member: &Member, page_path: &PagePath, answer: Answer) -> Result<Response, Problem> {
    let error = match transfer::answer(&app.forge, &member.viewer.caller, page_path.segment(1), answer).await {
        Ok(offer) => {
            let slug = offer.repo.slug();
            return Ok(respond::see_other(&match answer {
                Answer::Accept => format!("/{slug}?done=accepted"),
                Answer::Decline => "/transfers?done=declined".to_owned(),
                Answer::Cancel => format!("/{slug}/settings?done=canceled"),
            }));
        }
        Err(error) => error,
    };
    if error.class() != Class::Conflict {
        return Err(error.into());
    }
    let message = match &error {
        LifeError::NameTaken => {
            "you already have a repository with this name; rename or delete yours first, then accept".to_owned()
        }
        other => other.to_string(),
    };
    let page = offer_page(app, member, page_path, Some(sentence(&message))).await?;
    Ok(respond::html(StatusCode::CONFLICT, &page))
}
