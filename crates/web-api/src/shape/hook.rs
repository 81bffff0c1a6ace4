//! Webhooks and what they sent.

use super::{Urls, time};
use crate::App;
use abide_core::webhooks::DeliveryState;
use abide_forge::repos::Repo;
use abide_forge::webhooks::show::Seen;
use abide_forge::webhooks::{self, Delivery};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Stands for a secret, which is never shown.
pub(crate) const HIDDEN: &str = "********";

/// A webhook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct Hook {
    #[serde(rename = "type")]
    kind: &'static str,
    id: i64,
    name: &'static str,
    active: bool,
    events: Vec<&'static str>,
    config: HookConfig,
    created_at: String,
    updated_at: String,
    url: String,
    test_url: String,
    ping_url: String,
    deliveries_url: String,
    last_response: LastResponse,
    /// Since when only probes are sent, because deliveries failed again and again.
    suspended_at: Option<String>,
    /// When the next probe is sent.
    next_probe_at: Option<String>,
    /// Deliveries that wait.
    waiting: i64,
}

/// Where a webhook sends to, and how.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookConfig)]
pub(crate) struct HookConfig {
    url: String,
    content_type: &'static str,
    insecure_ssl: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'static str>,
}

/// Result of the latest delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookLastResponse)]
struct LastResponse {
    code: Option<i64>,
    status: &'static str,
    message: Option<String>,
}

impl HookConfig {
    pub(crate) fn of(hook: &webhooks::Hook) -> Self {
        Self {
            url: hook.url.clone(),
            content_type: hook.content_type.as_str(),
            insecure_ssl: "0",
            secret: hook.secret.as_ref().map(|_| HIDDEN),
        }
    }
}

impl Hook {
    pub(crate) fn of(app: &App, repo: &Repo, seen: &Seen) -> Self {
        let (urls, hook) = (Urls::of(app, repo), &seen.hook);
        let at = |tail: &str| urls.api(&format!("/hooks/{}{tail}", hook.id));
        let latest = seen.latest.as_ref();
        Self {
            kind: "Repository",
            id: hook.id.get(),
            name: "web",
            active: hook.active,
            events: hook.events.words(),
            config: HookConfig::of(hook),
            created_at: time(hook.created_at),
            updated_at: time(hook.updated_at),
            url: at(""),
            test_url: at("/tests"),
            ping_url: at("/pings"),
            deliveries_url: at("/deliveries"),
            last_response: LastResponse {
                code: latest.and_then(|delivery| delivery.status),
                status: match latest.map(|delivery| delivery.state) {
                    None => "unused",
                    Some(DeliveryState::Ok) => "active",
                    Some(_) => "failed",
                },
                message: latest.map(|delivery| delivery.error.clone().unwrap_or_else(|| "OK".into())),
            },
            suspended_at: hook.breaker.open_since.map(time),
            next_probe_at: hook.breaker.open_since.and(hook.next_at.or(hook.probe_at)).map(time),
            waiting: seen.waiting,
        }
    }
}

/// Something that was sent to a webhook, or is going to be.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(crate) struct HookDelivery {
    id: i64,
    guid: String,
    /// When it was last tried; when it was queued, if it was not.
    delivered_at: String,
    redelivery: bool,
    /// Seconds that the latest try took.
    duration: f64,
    /// `OK`, `pending`, or what went wrong.
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

/// The same with what was sent and what was answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDeliveryDetail)]
pub(crate) struct HookDeliveryDetail {
    #[serde(flatten)]
    delivery: HookDelivery,
    url: String,
    request: DeliveryRequest,
    response: DeliveryResponse,
}

/// The request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDeliveryRequest)]
struct DeliveryRequest {
    headers: Value,
    payload: Value,
}

/// The response.
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
