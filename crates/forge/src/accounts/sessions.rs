//! Web sessions. The cookie is a secret with 256 random bits; its hash is stored.

use super::one_time::{self, OneTime};
use crate::context::standing::Standing;
use crate::emit::{AuditAction, Who, audit_account};
use crate::{Caller, Fault, Forge, sealed};
use abide_core::{Redacted, Timestamp, UserId};
use abide_macros::boxed;
use abide_store::accounts::sessions::{self, NewSession};
use abide_store::accounts::users::User;
use abide_store::{StoreError, Tx};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;

/// Precision of "last seen": a write for each request would cost more than it is worth.
const LAST_SEEN_PRECISION: Duration = Duration::from_secs(600);
/// Characters of the `User-Agent` that are stored.
const AGENT_LEN: usize = 200;
/// Purpose under which form tokens are signed.
const CSRF: &str = "csrf token";

/// Session cookie. Sent once, to the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie(pub Redacted<String>);

/// A logged-in user.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub user: User,
    /// The user as a caller.
    pub caller: Caller,
    /// Id of this session.
    pub session_id: String,
    /// Start of the session.
    pub since: Timestamp,
    /// When the user last confirmed their identity.
    pub confirmed_at: Timestamp,
    /// Whether this request extends the session, so that the cookie's lifetime must be extended too.
    pub prolonged: bool,
}

/// A session, as its owner sees it.
#[derive(Debug, Clone)]
pub struct Session {
    /// Id for ending the session. It reveals nothing about the cookie.
    pub id: String,
    /// Whether it is the session of this request.
    pub current: bool,
    /// Address of the last use.
    pub ip: Option<String>,
    pub agent: String,
    pub created_at: Timestamp,
    /// Last use, to ten minutes.
    pub last_seen_at: Timestamp,
    /// Expiry, if it is not used again.
    pub expires_at: Timestamp,
}

/// A session that is about to be written. Created before the transaction, which may run more than once.
pub(super) struct Opening {
    secret: OneTime,
    user: UserId,
    agent: String,
    ip: Option<String>,
    ttl: Duration,
    keep: i64,
}

impl Opening {
    pub(super) fn new(forge: &Forge, user: UserId, agent: &str, ip: Option<IpAddr>) -> Self {
        let settings = forge.settings();
        Self {
            secret: OneTime::new(forge),
            user,
            agent: agent.chars().filter(|c| !c.is_control()).take(AGENT_LEN).collect(),
            ip: ip.map(|ip| ip.to_string()),
            ttl: settings.session.ttl,
            keep: settings.session.per_user,
        }
    }

    pub(super) async fn write(&self, tx: &mut Tx) -> Result<(), StoreError> {
        let new = NewSession {
            hash: self.secret.hash.into(),
            user_id: self.user,
            ip: self.ip.clone(),
            agent: self.agent.clone(),
            expires_at: tx.now().plus(self.ttl),
        };
        sessions::insert(tx, &new, self.keep).await?;
        let who = Who { user: Some(self.user), ip: self.ip.clone() };
        audit_account(tx, &who, AuditAction::LoggedIn, json!({ "user_id": self.user.get(), "agent": self.agent })).await
    }

    pub(super) fn cookie(&self) -> Cookie {
        Cookie(self.secret.text.clone())
    }
}

/// The viewer behind this cookie; `None` if the session is unknown or ended, or the account is suspended. One
/// statement.
#[boxed]
pub async fn by_cookie(forge: &Forge, cookie: &str, ip: Option<IpAddr>) -> Result<Option<Viewer>, Fault> {
    let now = forge.clock().now();
    let hash = one_time::hash(cookie);
    let found = sessions::open(&mut *forge.store().read().await?, &hash, now).await?;
    let Some((session, user)) = found else { return Ok(None) };
    let prolonged = now.since(session.last_seen_at) > LAST_SEEN_PRECISION;
    if prolonged {
        note_use(forge, session.hash.expose().clone(), ip, now);
    }
    let caller = Caller { standing: Standing::Session(hash.into()), ..Caller::of(user.actor(), ip) };
    Ok(Some(Viewer {
        user,
        caller,
        session_id: hex::encode(session.hash.expose()),
        since: session.created_at,
        confirmed_at: session.confirmed_at,
        prolonged,
    }))
}

/// Writes "last seen" in a background task: no request waits for it, and losing the write is harmless.
fn note_use(forge: &Forge, hash: Vec<u8>, ip: Option<IpAddr>, seen: Timestamp) {
    let (store, ttl) = (forge.store().clone(), forge.settings().session.ttl);
    forge.tasks().spawn(async move {
        let unit = (hash, ip.map(|ip| ip.to_string()));
        let noted: Result<(), StoreError> = store
            .write(unit, move |tx, (hash, ip)| {
                Box::pin(async move { sessions::touch(tx, hash, ip.as_deref(), seen, ttl).await })
            })
            .await;
        if let Err(error) = noted {
            tracing::warn!(%error, "cannot record the use of a session");
        }
    });
}

/// Ends the session of a cookie; an unknown cookie is not an error.
#[boxed]
pub async fn log_out(forge: &Forge, cookie: &str) -> Result<(), Fault> {
    let unit = one_time::hash(cookie);
    let ended = forge.store().write(unit, |tx, hash| {
        Box::pin(async move {
            if let Some(user) = sessions::end_by_hash(tx, hash).await? {
                let who = Who { user: Some(user), ip: None };
                audit_account(tx, &who, AuditAction::LoggedOut, json!({ "user_id": user.get() })).await?;
            }
            Ok::<_, Fault>(())
        })
    });
    ended.await
}

/// Ends one of the viewer's sessions; `false` if the viewer has no such session.
#[boxed]
pub async fn end(forge: &Forge, viewer: &Viewer, session_id: &str) -> Result<bool, Fault> {
    let Ok(hash) = hex::decode(session_id) else { return Ok(false) };
    let unit = (viewer.user.id, hash, Who::from(&viewer.caller));
    let ended = forge.store().write(unit, |tx, (user, hash, who)| {
        Box::pin(async move {
            let ended = sessions::end(tx, *user, hash).await?;
            if ended {
                audit_account(tx, who, AuditAction::SessionEnded, json!({ "user_id": user.get() })).await?;
            }
            Ok::<_, Fault>(ended)
        })
    });
    ended.await
}

/// Ends every session of the viewer, including this one; returns their number.
#[boxed]
pub async fn log_out_everywhere(forge: &Forge, viewer: &Viewer) -> Result<u64, Fault> {
    let unit = (viewer.user.id, Who::from(&viewer.caller));
    let ended = forge.store().write(unit, |tx, (user, who)| {
        Box::pin(async move {
            let ended = sessions::end_all(tx, *user).await?;
            let meta = json!({ "user_id": user.get(), "sessions": ended });
            audit_account(tx, who, AuditAction::LoggedOutEverywhere, meta).await?;
            Ok::<_, Fault>(ended)
        })
    });
    ended.await
}

/// Ends every other session of the viewer; returns their number.
#[boxed]
pub async fn end_others(forge: &Forge, viewer: &Viewer) -> Result<u64, Fault> {
    let keep = hex::decode(&viewer.session_id).unwrap_or_default();
    let unit = (viewer.user.id, keep, Who::from(&viewer.caller));
    let ended = forge.store().write(unit, |tx, (user, keep, who)| {
        Box::pin(async move {
            let ended = sessions::end_others(tx, *user, keep).await?;
            let meta = json!({ "user_id": user.get(), "sessions": ended });
            audit_account(tx, who, AuditAction::OtherSessionsEnded, meta).await?;
            Ok::<_, Fault>(ended)
        })
    });
    ended.await
}

/// The viewer's sessions, the last used first.
#[boxed]
pub async fn list(forge: &Forge, viewer: &Viewer) -> Result<Vec<Session>, Fault> {
    let (now, keep) = (forge.clock().now(), forge.settings().session.per_user);
    let all = sessions::of_user(&mut *forge.store().read().await?, viewer.user.id, now, keep).await?;
    let shown = all.into_iter().map(|session| {
        let id = hex::encode(session.hash.expose());
        Session {
            current: id == viewer.session_id,
            id,
            ip: session.ip,
            agent: session.agent,
            created_at: session.created_at,
            last_seen_at: session.last_seen_at,
            expires_at: session.expires_at,
        }
    });
    Ok(shown.collect())
}

/// A form token for this cookie, which only our pages know. A random mask changes the token each time, so that the size
/// of a compressed page reveals nothing about it.
pub fn csrf_token(forge: &Forge, cookie: &str) -> String {
    let mut mask = [0; 32];
    forge.random().fill(&mut mask);
    let masked = under(&mask, &sealed::sign(forge, CSRF, cookie.as_bytes()));
    URL_SAFE_NO_PAD.encode([mask, masked].concat())
}

fn under(mask: &[u8; 32], bytes: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| mask[at] ^ bytes[at])
}

/// Whether a form came from a page that was shown under this cookie. Runs in constant time.
pub fn csrf_matches(forge: &Forge, cookie: &str, token: &str) -> bool {
    let Ok(token) = URL_SAFE_NO_PAD.decode(token) else { return false };
    let Some((mask, masked)) = token.split_first_chunk::<32>() else { return false };
    let Ok(masked) = masked.try_into() else { return false };
    sealed::is_signed(forge, CSRF, cookie.as_bytes(), &under(mask, masked))
}
