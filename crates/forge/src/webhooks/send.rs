//! The sender of deliveries: one at a time for each webhook, in order; several webhooks in parallel.
//!
//! The sender claims a webhook with a hold (holder, expiry, fencing token), records the attempt, sends, and records the
//! result only if it still has the hold. So no delivery is sent twice at the same time. If a sender dies, the delivery is
//! sent again under the same GUID when the hold expires.

use super::{SECRET, choice, payload};
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::{Fault, Forge, sealed};
use abide_core::event::{HookHealth, Payload, Publicity};
use abide_core::failpoint;
use abide_core::webhooks::{Answered, Breaker, ContentType, DeliveryState, Outcome};
use abide_macros::boxed;
use abide_outbound::http::{HeaderMap, HeaderName, HeaderValue};
use abide_outbound::{Answer, GateError, OutboundUrl, Post};
use abide_store::webhooks::deliveries::{self, Tried};
use abide_store::webhooks::{self, Claim};
use abide_store::{StoreError, Tx, repos};
use hmac::{Hmac, Mac as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value as Json, json};
use sha2::Sha256;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Lifetime of a hold. An attempt is shorter: reading commits, waiting for a slot and the request take at most 30 seconds
/// each.
const HOLD: Duration = Duration::from_secs(120);
const AGENT: &str = concat!("Abide-Hookshot/", env!("CARGO_PKG_VERSION"));
/// Bytes of response headers that are stored.
const HEADERS: usize = 8 << 10;
/// Escaped bytes of a form value. Spaces become `+` afterwards.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b' ');

/// Sends due deliveries until stopped, and then waits for running attempts.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    let mut under_way = JoinSet::new();
    while !stop.is_cancelled() {
        let free = under_way.len() < forge.settings().webhooks.at_once.max(1);
        if free {
            match claim(&forge).await {
                Ok(Some(claim)) => {
                    under_way.spawn(serve(forge.clone(), claim, stop.clone()));
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "cannot read webhook deliveries; retrying"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = under_way.join_next() => {}
            () = forge.store().deliveries_grew(), if free => {}
            () = tokio::time::sleep(forge.settings().jobs.poll) => {}
        }
    }
    while under_way.join_next().await.is_some() {}
}

/// Sends all deliveries that are due now, for commands and tests without a running server.
#[boxed]
pub async fn catch_up(forge: &Forge) -> Result<(), Fault> {
    let stop = CancellationToken::new();
    let mut under_way = JoinSet::new();
    loop {
        while let Some(claim) = claim(forge).await? {
            under_way.spawn(serve(forge.clone(), claim, stop.clone()));
        }
        if under_way.join_next().await.is_none() {
            return Ok(());
        }
    }
}

/// Claims a webhook with a due delivery. A read comes first, so that an idle server never takes the write lock.
async fn claim(forge: &Forge) -> Result<Option<Claim>, Fault> {
    let now = forge.clock().now();
    if !webhooks::anything_to_do(&mut *forge.store().read().await?, now).await? {
        return Ok(None);
    }
    let holder = forge.node().holder().to_owned();
    let claimed = forge
        .store()
        .write(holder, |tx, holder| Box::pin(async move { Ok::<_, Fault>(webhooks::claim(tx, holder, HOLD).await?) }));
    claimed.await
}

/// Sends the due deliveries of a webhook, up to `webhooks.in_a_row`; then other webhooks get the slot.
async fn serve(forge: Forge, first: Claim, stop: CancellationToken) {
    let mut claim = first;
    for turn in 1.. {
        let go_on = turn < forge.settings().webhooks.in_a_row && !stop.is_cancelled();
        match hand_over(&forge, claim, go_on).await {
            Ok(Some(next)) => claim = next,
            Ok(None) => return,
            Err(Fault::Store(StoreError::LeaseLost(what))) => {
                tracing::info!(what, "the webhook was changed or claimed by another node during a delivery");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot store the response of a webhook; it is delivered again");
                return;
            }
        }
    }
}

/// Attempts one delivery and records the result. With `go_on`, returns the claim on the next due delivery.
async fn hand_over(forge: &Forge, claim: Claim, go_on: bool) -> Result<Option<Claim>, Fault> {
    failpoint::hit(failpoint::WEBHOOK_BEGUN);
    let claim = fixed(forge, claim).await?;
    failpoint::hit(failpoint::WEBHOOK_FIXED);
    let (answered, tried) = attempt(forge, &claim).await;
    failpoint::hit(failpoint::WEBHOOK_ANSWERED);
    let mut spread = [0];
    forge.random().fill(&mut spread);
    let end = End { forge: forge.clone(), claim, answered, tried, spread: spread[0], go_on };
    forge.store().write(end, |tx, end| Box::pin(write_end(tx, end))).await
}

/// Completes a draft and stores the final payload before it is sent, so that an attempt after a crash sends the same
/// bytes.
async fn fixed(forge: &Forge, mut claim: Claim) -> Result<Claim, Fault> {
    if !claim.delivery.draft {
        return Ok(claim);
    }
    let (payload, content_type) = payload::complete(forge, &claim.hook, &claim.delivery).await?;
    claim.delivery.payload = payload;
    claim.delivery.content_type = Some(content_type);
    claim.delivery.draft = false;
    let written: Result<(), Fault> =
        forge.store().write(claim.clone(), |tx, claim| Box::pin(write_fixed(tx, claim))).await;
    written.map(|()| claim)
}

async fn write_fixed(tx: &mut Tx, claim: &Claim) -> Result<(), Fault> {
    webhooks::check(tx, claim).await?;
    Ok(deliveries::fix(tx, claim.delivery.id, &claim.delivery.payload, content_type(claim)).await?)
}

/// The content type of the first attempt, even if the webhook was changed since.
fn content_type(claim: &Claim) -> ContentType {
    claim.delivery.content_type.unwrap_or(claim.hook.content_type)
}

/// Sends a delivery once.
async fn attempt(forge: &Forge, claim: &Claim) -> (Answered, Tried) {
    let (hook, delivery) = (&claim.hook, &claim.delivery);
    let body = match content_type(claim) {
        ContentType::Json => delivery.payload.clone(),
        ContentType::Form => format!("payload={}", form_escaped(&delivery.payload)),
    };
    let headers = match headers(forge, claim, body.as_bytes()) {
        Ok(headers) => headers,
        // A delivery that must be signed is never sent unsigned.
        Err(error) => {
            let tried = Tried { request_headers: "{}".into(), error: Some(error), ..Tried::default() };
            return (Answered::No, tried);
        }
    };
    let mut tried = Tried { request_headers: as_json(&headers), ..Tried::default() };
    let begun = Instant::now();
    let sent = match hook.url.parse::<OutboundUrl>() {
        Ok(address) => {
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            forge.gate().post(Post { address, headers, body: body.into() }).await
        }
        Err(error) => {
            tracing::warn!(hook = %hook.id, %error, "the URL of a webhook cannot be read");
            Err(GateError::Http(error.to_string()))
        }
    };
    tried.duration = begun.elapsed();
    let answered = match sent {
        Ok(answer) => {
            let answered = Answered::by_status(answer.status.as_u16());
            keep(&mut tried, &answer, answered);
            answered
        }
        Err(error) => {
            tracing::info!(hook = %hook.id, %error, "a webhook delivery failed");
            tried.error = Some(error.public_message());
            if error.hides_the_host() {
                // The duration of a lookup would reveal whether a name exists in the operator's network.
                tried.duration = Duration::ZERO;
            }
            // A host that the gate refuses is retried like a name that cannot be resolved, so that both look the same.
            Answered::NotNow
        }
    };
    let end = match answered {
        Answered::Yes => "arrived",
        Answered::NotNow => "not_now",
        Answered::No => "refused",
    };
    metrics::counter!("abide_webhook_tries_total", "end" => end).increment(1);
    metrics::histogram!("abide_webhook_try_seconds").record(begun.elapsed().as_secs_f64());
    (answered, tried)
}

fn keep(tried: &mut Tried, answer: &Answer, answered: Answered) {
    tried.status = Some(answer.status.as_u16().into());
    tried.response_headers = Some(as_json(&answer.headers));
    // PostgreSQL refuses NUL in text.
    let mut text = String::from_utf8_lossy(&answer.body).replace('\0', "\u{fffd}");
    if answer.cut {
        text.push_str("\n… (truncated)");
    }
    tried.response_body = Some(text);
    if answer.status.is_redirection() {
        tried.error = Some("redirects are not followed; set the payload URL to the redirect target".into());
    } else if answered != Answered::Yes {
        tried.error = Some(format!("the receiver responded with {}", answer.status));
    }
}

/// Headers of a delivery.
fn headers(forge: &Forge, claim: &Claim, body: &[u8]) -> Result<HeaderMap, String> {
    let (hook, delivery) = (&claim.hook, &claim.delivery);
    let mut headers = HeaderMap::new();
    let mut add = |name: &'static str, value: &str| -> Result<(), String> {
        let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        headers.insert(HeaderName::from_static(name), value);
        Ok(())
    };
    add("user-agent", AGENT)?;
    add("accept", "*/*")?;
    add("content-type", content_type(claim).mime())?;
    add("x-github-event", delivery.kind.as_str())?;
    add("x-github-delivery", &delivery.guid)?;
    add("x-github-hook-id", &hook.id.to_string())?;
    add("x-github-hook-installation-target-id", &hook.repo_id.to_string())?;
    add("x-github-hook-installation-target-type", "repository")?;
    add("x-abide-event", delivery.kind.as_str())?;
    add("x-abide-delivery", &delivery.guid)?;
    add("x-abide-attempt", &delivery.attempts.to_string())?;
    if let Some(sealed) = &hook.secret {
        let unreadable = "the secret was encrypted with another secret.key; set it again";
        let secret = sealed::open(forge, SECRET, sealed.expose()).ok_or(unreadable)?;
        add("x-hub-signature-256", &format!("sha256={}", signature(&secret, body)))?;
    }
    Ok(headers)
}

fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// Headers as a JSON object for the log of deliveries, up to [`HEADERS`] bytes.
fn as_json(headers: &HeaderMap) -> String {
    let mut kept = Map::new();
    let mut size = 0;
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        size += name.as_str().len() + value.len();
        if size > HEADERS {
            break;
        }
        kept.insert(shown(name), value.into());
    }
    Json::Object(kept).to_string()
}

/// `X-GitHub-Event` for `x-github-event`: the library has lower-case names.
fn shown(name: &HeaderName) -> String {
    let part = |part: &str| match part {
        "github" => "GitHub".to_owned(),
        "id" => "ID".to_owned(),
        other => other[..1].to_ascii_uppercase() + &other[1..],
    };
    name.as_str()
        .split('-')
        .map(|it| if it.is_empty() { String::new() } else { part(it) })
        .collect::<Vec<_>>()
        .join("-")
}

/// A value of a form. The URL standard's serializer (`form_urlencoded`) escapes `~` and leaves `*`; receivers have seen the
/// opposite since the first version, and the signature covers these bytes.
fn form_escaped(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string().replace(' ', "+")
}

struct End {
    forge: Forge,
    claim: Claim,
    answered: Answered,
    tried: Tried,
    spread: u8,
    go_on: bool,
}

async fn write_end(tx: &mut Tx, end: &End) -> Result<Option<Claim>, Fault> {
    let (claim, now) = (&end.claim, tx.now());
    let before = webhooks::check(tx, claim).await?;
    let schedule = end.forge.settings().webhooks.schedule;
    let step = schedule.after(before, claim.delivery.attempts, end.answered, now, end.spread);
    let state = match step.outcome {
        Outcome::Arrived => DeliveryState::Ok,
        Outcome::Failed => DeliveryState::Failed,
        Outcome::Again(_) => DeliveryState::Queued,
    };
    deliveries::end(tx, claim.delivery.id, state, &end.tried).await?;
    webhooks::settle(tx, claim, step.breaker, step.next).await?;
    log(tx, claim, before, step.breaker).await?;
    match end.go_on {
        true => Ok(webhooks::go_on(tx, claim, end.forge.node().holder(), HOLD).await?),
        false => Ok(None),
    }
}

/// Writes the audit row and the event when a webhook is suspended or resumes.
async fn log(tx: &mut Tx, claim: &Claim, before: Breaker, after: Breaker) -> Result<(), StoreError> {
    let (hook_id, host) = (claim.hook.id, choice::host(&claim.hook.url));
    let health = HookHealth { hook_id, host: host.clone(), failures: after.failures };
    let (action, payload) = match (before.open_since, after.open_since) {
        (None, Some(_)) => (AuditAction::WebhookSuspended, Payload::WebhookSuspended(health)),
        (Some(_), None) => (AuditAction::WebhookResumed, Payload::WebhookResumed(health)),
        (None, None) | (Some(_), Some(_)) => return Ok(()),
    };
    let Some(repo) = repos::by_id(tx, claim.hook.repo_id, None).await? else { return Ok(()) };
    let who = Who::default();
    let meta = json!({
        "hook_id": hook_id.get(),
        "host": host,
        "failures": after.failures,
        "owner_id": repo.owner_id.get(),
    });
    audit_repo(tx, &who, action, &repo, meta).await?;
    emit(tx, &who, Subject::Webhook(&repo, hook_id), Publicity::Private, payload).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_value_keeps_only_unreserved_bytes_and_writes_spaces_as_plus() {
        let plain = "azAZ09-._~";
        assert_eq!(form_escaped(plain), plain);
        assert_eq!(form_escaped("a b+c"), "a+b%2Bc");
        assert_eq!(form_escaped("{\"k\":\"é*/&=%\n\"}"), "%7B%22k%22%3A%22%C3%A9%2A%2F%26%3D%25%0A%22%7D");
    }
}
