//! Webhooks and their deliveries.

use super::{Hook, time};
use crate::App;
use abide_core::webhooks::DeliveryState;
use abide_forge::github::HookHealth;
use abide_forge::repos::Repo;
use abide_forge::webhooks::show::Seen;
use abide_forge::webhooks::{self, Delivery};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A webhook with its latest delivery.
pub(crate) fn hook(app: &App, repo: &Repo, seen: &Seen) -> Hook {
    let health = HookHealth { latest: seen.latest.as_ref(), waiting: seen.waiting };
    Hook::of(&app.forge, repo, &seen.hook, health)
}

/// A delivery of a webhook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(crate) struct HookDelivery {
    id: i64,
    guid: String,
    /// Time of the latest attempt; before the first attempt, the time when it was queued.
    delivered_at: String,
    redelivery: bool,
    /// Duration of the latest attempt in seconds.
    duration: f64,
    /// `OK`, `pending` or an error message.
    status: String,
    status_code: i64,
    event: &'static str,
    action: Option<String>,
    installation_id: Option<i64>,
    repository_id: i64,
    throttled_at: Option<String>,
    /// `queued`, `sending`, `ok` or `failed`.
    state: &'static str,
    attempts: i64,
}

impl HookDelivery {
    pub(crate) fn of(repo: &Repo, delivery: &Delivery) -> Self {
        let status = match (delivery.state, &delivery.error) {
            (DeliveryState::Ok, _) => "OK".to_owned(),
            (_, Some(error)) => error.clone(),
            (_, None) => "pending".to_owned(),
        };
        Self {
            id: delivery.id.get(),
            guid: delivery.guid.clone(),
            delivered_at: time(delivery.attempted_at.unwrap_or(delivery.created_at)),
            redelivery: delivery.redelivery_of.is_some(),
            duration: delivery.duration.unwrap_or_default().as_secs_f64(),
            status,
            status_code: delivery.status.unwrap_or(0),
            event: delivery.kind.as_str(),
            action: delivery.action.clone(),
            installation_id: None,
            repository_id: repo.id.get(),
            throttled_at: None,
            state: delivery.state.as_str(),
            attempts: delivery.attempts,
        }
    }
}

/// A delivery with its request and response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDeliveryDetail)]
pub(crate) struct HookDeliveryDetail {
    #[serde(flatten)]
    delivery: HookDelivery,
    url: String,
    request: DeliveryRequest,
    response: DeliveryResponse,
}

/// Request of a delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDeliveryRequest)]
struct DeliveryRequest {
    headers: Value,
    payload: Value,
}

/// Response to a delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDeliveryResponse)]
struct DeliveryResponse {
    headers: Value,
    payload: Option<String>,
}

impl HookDeliveryDetail {
    pub(crate) fn of(repo: &Repo, hook: &webhooks::Hook, delivery: &Delivery) -> Self {
        let read = |text: Option<&str>| text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
        Self {
            delivery: HookDelivery::of(repo, delivery),
            url: hook.url.clone(),
            request: DeliveryRequest {
                headers: read(delivery.request_headers.as_deref()),
                payload: read(Some(&delivery.payload)),
            },
            response: DeliveryResponse {
                headers: read(delivery.response_headers.as_deref()),
                payload: delivery.response_body.clone(),
            },
        }
    }
}
