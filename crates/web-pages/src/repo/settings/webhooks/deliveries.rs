//! Deliveries of a webhook with their responses; pings and redeliveries.

use super::{DELIVERY, at, enter};
use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::head::{Head, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::DeliveryId;
use abide_core::policy::Action;
use abide_forge::webhooks::show::{self, Seen};
use abide_forge::webhooks::{Delivery, ask};
use askama::Template;
use axum::extract::State;

const PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "repo/settings/webhook_deliveries.html")]
struct DeliveriesPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    seen: Seen,
    /// Base URL of the webhook's pages.
    base: String,
    rows: Vec<Delivery>,
    links: Links,
}

/// `GET /{owner}/{repo}/settings/webhooks/{hook}/deliveries`
pub(in crate::repo) async fn list(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookList).await?;
    let before: Option<i64> = page_path.query("before").and_then(|id| id.parse().ok());
    let limit = PER_PAGE as i64 + 1;
    let mut rows = show::deliveries(&app.forge, &seen.hook, before.map(DeliveryId::new), limit).await?;
    let path = at(&room, &format!("/{}/deliveries", seen.hook.id));
    let link = |before: Option<i64>| match before {
        Some(id) => format!("{path}?before={id}"),
        None => path.clone(),
    };
    let links = Links::behind(&mut rows, PER_PAGE, before, |row| row.id.get(), link);
    Ok(respond::page(&DeliveriesPage {
        frame: Frame::new(&app, &room.visitor, format!("Deliveries · {}", room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "webhooks",
        base: at(&room, &format!("/{}", seen.hook.id)),
        seen,
        rows,
        links,
    }))
}

#[derive(Template)]
#[template(path = "repo/settings/webhook_delivery.html")]
struct DeliveryPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    can_manage: bool,
    seen: Seen,
    /// Base URL of the webhook's pages.
    base: String,
    delivery: Delivery,
    payload: String,
    sent_with: Vec<(String, String)>,
    answered_with: Vec<(String, String)>,
}

/// `GET /{owner}/{repo}/settings/webhooks/{hook}/deliveries/{delivery}`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookList).await?;
    let delivery = show::delivery(&app.forge, &seen.hook, page_path.segment(DELIVERY)).await?;
    Ok(respond::page(&DeliveryPage {
        frame: Frame::new(&app, &room.visitor, format!("Delivery {} · {}", delivery.id, room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "webhooks",
        can_manage: room.may(Action::WebhookManage),
        payload: spread(&delivery.payload),
        sent_with: pairs(delivery.request_headers.as_deref()),
        answered_with: pairs(delivery.response_headers.as_deref()),
        base: at(&room, &format!("/{}", seen.hook.id)),
        seen,
        delivery,
    }))
}

fn spread(payload: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(payload).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| payload.to_owned())
}

fn pairs(headers: Option<&str>) -> Vec<(String, String)> {
    let read: Option<serde_json::Map<String, serde_json::Value>> =
        headers.and_then(|text| serde_json::from_str(text).ok());
    let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    read.unwrap_or_default().into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}/deliveries/{delivery}/redeliver`
pub(in crate::repo) async fn redeliver(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    _form: Form,
) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    let found = show::delivery(&app.forge, &seen.hook, page_path.segment(DELIVERY)).await?;
    let again = ask::redeliver(&app.forge, &room.visitor.caller(), room.repo(), &seen.hook, found.id).await?;
    Ok(respond::see_other(&at(&room, &format!("/{}/deliveries/{again}?done=sending", seen.hook.id))))
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}/ping`
pub(in crate::repo) async fn ping(State(app): State<App>, visitor: Visitor, page_path: PagePath, _form: Form) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    ask::ping(&app.forge, &room.visitor.caller(), room.repo(), &seen.hook).await?;
    Ok(respond::see_other(&at(&room, &format!("/{}?done=sending", seen.hook.id))))
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}/test`
pub(in crate::repo) async fn test(State(app): State<App>, visitor: Visitor, page_path: PagePath, _form: Form) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    let sent = ask::latest_push(&app.forge, &room.visitor.caller(), room.repo(), &seen.hook).await?;
    let done = if sent { "sending" } else { "nothing-to-send" };
    Ok(respond::see_other(&at(&room, &format!("/{}?done={done}", seen.hook.id))))
}
