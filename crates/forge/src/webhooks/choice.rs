//! Configuration of a webhook, and its validation.

use super::{Hook, HookError, SECRET};
use crate::{Forge, sealed};
use abide_core::Redacted;
use abide_core::event::HookChoice;
use abide_core::webhooks::{self as rules, ContentType, Kinds};
use abide_outbound::OutboundUrl;
use abide_store::webhooks::Choice;

/// Change of the secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Secret {
    #[default]
    Keep,
    /// Deliveries are no longer signed.
    Remove,
    /// This one.
    Set(Redacted<String>),
}

/// Fields of a webhook; a missing field stays as it is, or gets its default in a new webhook.
#[derive(Debug, Clone, Default)]
pub struct Change {
    pub url: Option<String>,
    /// `json` or `form`.
    pub content_type: Option<String>,
    pub secret: Secret,
    /// GitHub's switch to skip the verification of certificates. `true` is refused.
    pub insecure_ssl: bool,
    pub events: Option<Vec<String>>,
    pub active: Option<bool>,
}

/// Validates a change and merges it into the current configuration.
pub(super) fn choose(forge: &Forge, change: &Change, before: Option<&Hook>) -> Result<Choice, HookError> {
    if change.insecure_ssl {
        return Err(invalid("insecure_ssl", "is not supported: certificates are always verified"));
    }
    let url = match (&change.url, before) {
        (Some(typed), _) => address(forge, typed)?,
        (None, Some(hook)) => hook.url.clone(),
        (None, None) => return Err(invalid("url", "is required")),
    };
    let content_type = match (&change.content_type, before) {
        (Some(word), _) => word.parse().map_err(|error| invalid("content_type", error))?,
        (None, Some(hook)) => hook.content_type,
        (None, None) => ContentType::Json,
    };
    let events = match (&change.events, before) {
        (Some(words), _) => Kinds::parse(words).map_err(|error| invalid("events", error))?,
        (None, Some(hook)) => hook.events.clone(),
        (None, None) => Kinds::usual(),
    };
    let secret = match &change.secret {
        Secret::Keep => before.and_then(|hook| hook.secret.clone()),
        Secret::Remove => None,
        Secret::Set(typed) => {
            let plain = rules::secret(typed.expose()).map_err(|error| invalid("secret", error))?;
            plain.map(|plain| sealed::seal(forge, SECRET, plain.as_bytes()).into())
        }
    };
    let active = change.active.or(before.map(|hook| hook.active)).unwrap_or(true);
    Ok(Choice { url, content_type, secret, events, active })
}

/// A valid payload URL. The outbound gate checks literal addresses here, and resolved names at every attempt.
fn address(forge: &Forge, typed: &str) -> Result<String, HookError> {
    let address: OutboundUrl = typed.trim().parse().map_err(|error| invalid("url", error))?;
    forge.gate().screen(&address).map_err(|error| invalid("url", format!("is not allowed: {error}")))?;
    Ok(address.as_str().to_owned())
}

fn invalid(field: &'static str, rule: impl ToString) -> HookError {
    HookError::Invalid { field, rule: rule.to_string() }
}

/// The part of a URL that may be shown: the path is often a secret.
pub(super) fn host(url: &str) -> String {
    url.parse::<OutboundUrl>().map(|address| address.authority()).unwrap_or_default()
}

/// The configuration for audit log and events: without the secret, and with the host only instead of the URL.
pub(super) fn logged(url: &str, events: &Kinds, active: bool) -> HookChoice {
    HookChoice { host: host(url), events: events.words().into_iter().map(str::to_owned).collect(), active }
}
