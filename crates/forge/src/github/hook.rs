//! Webhooks.

use super::{Urls, time};
use crate::Forge;
use abide_core::webhooks::DeliveryState;
use abide_store::repos::Repo;
use abide_store::webhooks;
use abide_store::webhooks::deliveries::Delivery;
use serde::Serialize;
use utoipa::ToSchema;

/// Placeholder for a secret, which is never shown.
pub const HIDDEN: &str = "********";

/// A webhook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct Hook {
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
    // API only, like the fields below: a receiver of a ping knows what it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = LastResponse, required)]
    last_response: Option<LastResponse>,
    /// Start of the suspension after repeated failures; a suspended webhook sends only probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    suspended_at: Option<Option<String>>,
    /// Time of the next probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    next_probe_at: Option<Option<String>>,
    /// Number of deliveries that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, required)]
    waiting: Option<i64>,
}

/// Configuration of a webhook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookConfig)]
pub struct HookConfig {
    url: String,
    content_type: &'static str,
    insecure_ssl: &'static str,
    // Without a secret, the API leaves the field out and a ping sends `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<&'static str>)]
    secret: Option<Option<&'static str>>,
}

/// Result of the latest delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookLastResponse)]
pub struct LastResponse {
    code: Option<i64>,
    status: &'static str,
    message: Option<String>,
}

/// Deliveries of a webhook, as far as the API shows them in the webhook itself.
#[derive(Debug, Clone, Copy)]
pub struct HookHealth<'a> {
    /// The latest delivery that was tried.
    pub latest: Option<&'a Delivery>,
    pub waiting: i64,
}

impl HookConfig {
    /// In the API.
    pub fn of(hook: &webhooks::Hook) -> Self {
        Self { secret: hook.secret.as_ref().map(|_| Some(HIDDEN)), ..Self::in_ping(hook) }
    }

    fn in_ping(hook: &webhooks::Hook) -> Self {
        Self {
            url: hook.url.clone(),
            content_type: hook.content_type.as_str(),
            insecure_ssl: "0",
            secret: Some(hook.secret.as_ref().map(|_| HIDDEN)),
        }
    }
}

impl Hook {
    /// In the API.
    pub fn of(forge: &Forge, repo: &Repo, hook: &webhooks::Hook, health: HookHealth<'_>) -> Self {
        let HookHealth { latest, waiting } = health;
        let last_response = LastResponse {
            code: latest.and_then(|delivery| delivery.status),
            status: match latest.map(|delivery| delivery.state) {
                None => "unused",
                Some(DeliveryState::Ok) => "active",
                Some(_) => "failed",
            },
            message: latest.map(|delivery| delivery.error.clone().unwrap_or_else(|| "OK".into())),
        };
        let next_probe_at = hook.breaker.open_since.and(hook.next_at.or(hook.probe_at));
        Self {
            config: HookConfig::of(hook),
            last_response: Some(last_response),
            suspended_at: Some(hook.breaker.open_since.map(time)),
            next_probe_at: Some(next_probe_at.map(time)),
            waiting: Some(waiting),
            ..Self::in_ping(forge, repo, hook)
        }
    }

    /// In the payload of a ping.
    pub fn in_ping(forge: &Forge, repo: &Repo, hook: &webhooks::Hook) -> Self {
        let urls = Urls::of(forge, repo);
        let at = |tail: &str| urls.api(&format!("/hooks/{}{tail}", hook.id));
        Self {
            kind: "Repository",
            id: hook.id.get(),
            name: "web",
            active: hook.active,
            events: hook.events.words(),
            config: HookConfig::in_ping(hook),
            created_at: time(hook.created_at),
            updated_at: time(hook.updated_at),
            url: at(""),
            test_url: at("/tests"),
            ping_url: at("/pings"),
            deliveries_url: at("/deliveries"),
            last_response: None,
            suspended_at: None,
            next_probe_at: None,
            waiting: None,
        }
    }
}
