//! Webhook deliveries: one row each, with the request and the last response.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, webhooks};
use abide_core::webhooks::{ContentType, DeliveryState, Kind};
use abide_core::{DeliveryId, HookId, Timestamp};
use std::time::Duration;

/// Columns of [`Delivery`].
macro_rules! columns {
    () => {
        "id, hook_id, guid, kind, action, redelivery_of, payload, content_type, draft, state, attempts, created_at,
            attempted_at, finished_at, duration, request_headers, status, error, response_headers, response_body"
    };
}

/// Columns of [`Delivery`] without payload, headers and response body.
macro_rules! short_columns {
    () => {
        "id, hook_id, guid, kind, action, redelivery_of, '' AS payload, content_type, draft, state, attempts, created_at,
            attempted_at, finished_at, duration, CAST(NULL AS TEXT) AS request_headers, status, error,
            CAST(NULL AS TEXT) AS response_headers, CAST(NULL AS TEXT) AS response_body"
    };
}

statements! {
    INSERT = "INSERT INTO webhook_deliveries
        (hook_id, guid, event_id, part, kind, action, redelivery_of, payload, content_type, draft, state, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', $11)
        ON CONFLICT (hook_id, event_id, part) DO NOTHING
        RETURNING id";
    /// Oldest waiting delivery, including one whose sender is gone.
    OLDEST = "SELECT id FROM webhook_deliveries WHERE hook_id = $1 AND state IN ('queued', 'sending') ORDER BY id LIMIT 1";
    BEGIN = concat!("UPDATE webhook_deliveries SET state = 'sending', attempts = attempts + 1, attempted_at = $2
        WHERE id = $1 RETURNING ", columns!());
    /// Stores the bytes that every attempt sends.
    FIX = "UPDATE webhook_deliveries SET payload = $2, content_type = $3, draft = FALSE WHERE id = $1 AND draft";
    END = "UPDATE webhook_deliveries SET state = $2, finished_at = $3, duration = $4,
            request_headers = $5, status = $6, error = $7, response_headers = $8, response_body = $9
        WHERE id = $1";
    HAND_BACK = "UPDATE webhook_deliveries SET state = 'queued', attempts = attempts - 1 WHERE id = $1 AND state = 'sending'";
    OF_HOOK = concat!("SELECT ", short_columns!(), " FROM webhook_deliveries
        WHERE hook_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    BY_ID = concat!("SELECT ", columns!(), " FROM webhook_deliveries WHERE hook_id = $1 AND id = $2");
    COUNT_WAITING = "SELECT count(*) AS n FROM webhook_deliveries WHERE hook_id = $1 AND state IN ('queued', 'sending')";
    /// Latest attempted delivery of a hook.
    LATEST_TRIED = concat!("SELECT ", short_columns!(), " FROM webhook_deliveries
        WHERE hook_id = $1 AND duration IS NOT NULL ORDER BY id DESC LIMIT 1");
    /// An array, because PostgreSQL would read the whole table for a list of hundreds.
    PRUNE = "DELETE FROM webhook_deliveries WHERE id ",
        sqlite "IN (SELECT id FROM webhook_deliveries WHERE created_at < $1 AND state <> 'sending'
            ORDER BY created_at LIMIT 500)",
        postgres "= ANY (ARRAY (SELECT id FROM webhook_deliveries WHERE created_at < $1 AND state <> 'sending'
            ORDER BY created_at LIMIT 500))";
}

#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub hook_id: HookId,
    /// Id that the receiver sees.
    pub guid: String,
    pub kind: Kind,
    pub action: Option<String>,
    /// The delivery that this one repeats.
    pub redelivery_of: Option<DeliveryId>,
    /// JSON. Empty in lists.
    pub payload: String,
    /// Content type of every attempt. `None`: the current one of the hook.
    pub content_type: Option<ContentType>,
    /// The payload is completed and refreshed before the first attempt.
    pub draft: bool,
    pub state: DeliveryState,
    /// Number of attempts.
    pub attempts: i64,
    pub created_at: Timestamp,
    /// Time of the last attempt.
    pub attempted_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Duration of the last attempt.
    pub duration: Option<Duration>,
    /// Request headers as a JSON object.
    pub request_headers: Option<String>,
    /// HTTP status of the response.
    pub status: Option<i64>,
    /// Reason for a missing or invalid response.
    pub error: Option<String>,
    /// Response headers as a JSON object.
    pub response_headers: Option<String>,
    /// Start of the response body.
    pub response_body: Option<String>,
}

impl Delivery {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let duration = row.opt_int("duration")?;
        Ok(Self {
            id: DeliveryId::new(row.int("id")?),
            hook_id: HookId::new(row.int("hook_id")?),
            guid: row.text("guid")?,
            kind: row.parsed("kind")?,
            action: row.opt_text("action")?,
            redelivery_of: row.opt_int("redelivery_of")?.map(DeliveryId::new),
            payload: row.text("payload")?,
            content_type: row.opt_parsed("content_type")?,
            draft: row.bool("draft")?,
            state: row.parsed("state")?,
            attempts: row.int("attempts")?,
            created_at: row.time("created_at")?,
            attempted_at: row.opt_time("attempted_at")?,
            finished_at: row.opt_time("finished_at")?,
            duration: duration.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
            request_headers: row.opt_text("request_headers")?,
            status: row.opt_int("status")?,
            error: row.opt_text("error")?,
            response_headers: row.opt_text("response_headers")?,
            response_body: row.opt_text("response_body")?,
        })
    }
}

/// A delivery to enqueue.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    pub hook_id: HookId,
    /// Id that the receiver will see.
    pub guid: String,
    /// Event and its part; `None` for a delivery that a user requested.
    pub event: Option<(i64, i64)>,
    pub kind: Kind,
    pub action: Option<String>,
    /// The delivery that it repeats.
    pub redelivery_of: Option<DeliveryId>,
    /// JSON.
    pub payload: String,
    /// Content type of every attempt, if it is fixed already.
    pub content_type: Option<ContentType>,
    /// The payload is to be completed and refreshed before the first attempt.
    pub draft: bool,
}

/// Enqueues a delivery after those that wait; `None` if the same part of the same event was enqueued before.
pub async fn enqueue(tx: &mut Tx, new: &NewDelivery) -> Result<Option<DeliveryId>, StoreError> {
    let now = tx.now();
    let (event, part) = new.event.unzip();
    let values = params![
        new.hook_id,
        new.guid.as_str(),
        event,
        part.unwrap_or(0),
        new.kind.as_str(),
        new.action.as_deref(),
        new.redelivery_of,
        new.payload.as_str(),
        new.content_type.map(ContentType::as_str),
        new.draft,
        now
    ];
    let Some(row) = tx.one(&INSERT, values).await? else { return Ok(None) };
    webhooks::wake(tx, new.hook_id).await?;
    row.int("id").map(|id| Some(DeliveryId::new(id)))
}

/// Starts the oldest waiting delivery of a hook. The caller holds the hook.
pub(crate) async fn begin_oldest(tx: &mut Tx, hook: HookId) -> Result<Option<Delivery>, StoreError> {
    let now = tx.now();
    let Some(row) = tx.one(&OLDEST, params![hook]).await? else { return Ok(None) };
    Delivery::from_row(&tx.only(&BEGIN, params![row.int("id")?, now]).await?).map(Some)
}

/// Request and result of an attempt.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    /// Request headers as a JSON object.
    pub request_headers: String,
    pub duration: Duration,
    /// HTTP status of the response.
    pub status: Option<i64>,
    /// Reason for a missing or invalid response.
    pub error: Option<String>,
    /// Response headers as a JSON object.
    pub response_headers: Option<String>,
    /// Start of the response body.
    pub response_body: Option<String>,
}

/// Stores the final payload and its content type before the first attempt: every attempt and redelivery sends the same
/// bytes. The caller holds the hook.
pub async fn fix(tx: &mut Tx, id: DeliveryId, payload: &str, content_type: ContentType) -> Result<(), StoreError> {
    tx.execute(&FIX, params![id, payload, content_type.as_str()]).await.map(drop)
}

/// Records the result of an attempt and the new state of the delivery. The caller holds the hook.
pub async fn end(tx: &mut Tx, id: DeliveryId, state: DeliveryState, tried: &Tried) -> Result<(), StoreError> {
    let ended = matches!(state, DeliveryState::Ok | DeliveryState::Failed).then(|| tx.now());
    let values = params![
        id,
        state.as_str(),
        ended,
        i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX),
        tried.request_headers.as_str(),
        tried.status,
        tried.error.as_deref(),
        tried.response_headers.as_deref(),
        tried.response_body.as_deref()
    ];
    tx.execute(&END, values).await.map(drop)
}

/// Returns a delivery without an attempt, because the sender is stopping. The caller holds the hook.
pub async fn hand_back(tx: &mut Tx, id: DeliveryId) -> Result<(), StoreError> {
    tx.execute(&HAND_BACK, params![id]).await.map(drop)
}

/// Deliveries of a hook before one of them, latest first, without the long columns.
pub async fn of_hook(
    conn: &mut Conn,
    hook: HookId,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<Delivery>, StoreError> {
    let before = before.map_or(i64::MAX, DeliveryId::get);
    conn.all(&OF_HOOK, params![hook, before, limit]).await?.iter().map(Delivery::from_row).collect()
}

/// A delivery of a hook.
pub async fn by_id(conn: &mut Conn, hook: HookId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
    conn.one(&BY_ID, params![hook, id]).await?.as_ref().map(Delivery::from_row).transpose()
}

/// Number of waiting deliveries of a hook.
pub async fn waiting(conn: &mut Conn, hook: HookId) -> Result<i64, StoreError> {
    conn.only(&COUNT_WAITING, params![hook]).await?.int("n")
}

/// Latest attempted delivery of a hook, without the long columns.
pub async fn latest_tried(conn: &mut Conn, hook: HookId) -> Result<Option<Delivery>, StoreError> {
    conn.one(&LATEST_TRIED, params![hook]).await?.as_ref().map(Delivery::from_row).transpose()
}

/// Removes up to 500 deliveries enqueued before an instant, in any state but `sending`; returns their number.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&PRUNE, params![before]).await
}
