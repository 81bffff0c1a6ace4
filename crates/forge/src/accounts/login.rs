//! Login: a password, then an optional second factor, then a session.
//!
//! All refusals look the same. An unknown account costs one password check like any other and gets the same words. Only
//! a client that knows the password learns that the account is suspended.

use super::sessions::{Cookie, Opening};
use super::ticket::{self, Ticket};
use super::{one_time, password, second_factor as factor};
use crate::{Fault, Forge, throttle};
use abide_core::{Redacted, UserId, UserName};
use abide_macros::boxed;
use abide_store::accounts::totp;
use abide_store::accounts::users::{self, User};
use abide_store::throttles::{self, Limit};
use abide_store::{StoreError, Tx};
use std::net::IpAddr;
use std::time::Duration;

pub(super) const BY_NETWORK: &str = "login:ip";
const BY_ACCOUNT: &str = "login:account";
const BY_FACTOR: &str = "login:factor";

/// A login request.
#[derive(Debug)]
pub struct Request {
    /// Username or email address.
    pub login: String,
    pub password: Redacted<String>,
    /// `User-Agent` of the browser.
    pub agent: String,
    pub ip: Option<IpAddr>,
}

/// Result of a correct password.
pub enum Outcome {
    In(Cookie),
    /// A code is needed too.
    SecondFactor(SecondFactorTicket),
}

/// Must be sent back with the code, within ten minutes.
#[derive(Debug)]
pub struct SecondFactorTicket(pub Redacted<String>);

/// Why the login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The account does not exist, or the password or code is wrong.
    #[error("wrong user name or password")]
    Wrong,
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    /// The password is right, but the account is suspended.
    #[error("this account is suspended; ask the site administrator")]
    Suspended,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Throttle keys of attempts: the network, and the account from that network.
#[derive(Clone)]
struct Counted {
    network: String,
    account: String,
}

impl Counted {
    /// Counts by the typed text, whether or not an account matches: a shared count for the name and the addresses of
    /// one account would reveal that they belong together. The text is hashed, because people type passwords into the
    /// wrong field.
    fn new(typed: &str, ip: Option<IpAddr>) -> Self {
        let network = throttle::network(ip);
        let typed = hex::encode(&one_time::hash(&typed.to_lowercase())[..16]);
        Self { account: format!("{typed} from {network}"), network }
    }
}

/// Checks a password and opens a session, or asks for the second factor.
#[boxed]
pub async fn login(forge: &Forge, request: Request) -> Result<Outcome, LoginError> {
    let typed = request.login.trim();
    let known = find(forge, typed).await?;
    let counted = Counted::new(typed, request.ip);
    count(forge, counted.clone()).await?;

    let hash = known.as_ref().and_then(|user| user.password_hash.clone());
    let right = password::verify(forge, request.password, hash).await?;
    let Some(user) = known.filter(|_| right) else {
        metrics::counter!("abide_logins_total", "end" => "wrong").increment(1);
        return Err(LoginError::Wrong);
    };
    let needs_factor = factor_is_on(forge, user.id).await?;
    let opening = Opening::new(forge, user.id, &request.agent, request.ip);
    let open = user.suspended_at.is_none() && !needs_factor;
    let unit = (user.clone(), counted, opening, open);
    let cookie: Cookie = forge
        .store()
        .write(unit, |tx, (user, counted, opening, open)| {
            Box::pin(async move {
                throttles::forgive(tx, BY_NETWORK, &counted.network).await?;
                throttles::clear(tx, BY_ACCOUNT, &counted.account).await?;
                if *open {
                    ensure_unchanged(tx, user).await?;
                    opening.write(tx).await?;
                }
                Ok::<_, LoginError>(opening.cookie())
            })
        })
        .await?;
    match (user.suspended_at, needs_factor) {
        (Some(_), _) => Err(LoginError::Suspended),
        (None, true) => Ok(Outcome::SecondFactor(SecondFactorTicket(ticket::issue(forge, &user).into()))),
        (None, false) => {
            metrics::counter!("abide_logins_total", "end" => "in").increment(1);
            Ok(Outcome::In(cookie))
        }
    }
}

async fn find(forge: &Forge, typed: &str) -> Result<Option<User>, Fault> {
    let mut conn = forge.store().read().await?;
    if typed.contains('@') {
        return Ok(users::by_email(&mut conn, typed).await?);
    }
    match typed.parse::<UserName>() {
        Ok(name) => Ok(users::by_name(&mut conn, &name).await?),
        Err(_) => Ok(None),
    }
}

/// A password change or a suspension during this login ends every session; this login must not open one after it. The
/// lock on the account puts the two in order.
async fn ensure_unchanged(tx: &mut Tx, user: &User) -> Result<(), LoginError> {
    let now = users::lock(tx, user.id).await?;
    let same = now.is_some_and(|now| now.password_hash == user.password_hash && now.suspended_at.is_none());
    if same { Ok(()) } else { Err(LoginError::Wrong) }
}

/// Counts an attempt before the password is checked, so that parallel attempts are all counted.
async fn count(forge: &Forge, counted: Counted) -> Result<(), LoginError> {
    let settings = forge.settings();
    let limits =
        (throttle::limit(BY_NETWORK, settings.login.by_ip()), throttle::limit(BY_ACCOUNT, settings.login.by_account()));
    let unit = (counted, limits);
    let waits: Option<Duration> = forge
        .store()
        .write(unit, |tx, (counted, limits)| {
            Box::pin(async move {
                // A blocked network adds no rows for accounts.
                match throttles::hit(tx, limits.0, &counted.network).await? {
                    Some(wait) => Ok::<_, LoginError>(Some(wait)),
                    None => Ok(throttles::hit(tx, limits.1, &counted.account).await?),
                }
            })
        })
        .await?;
    throttled(waits)
}

fn throttled(waits: Option<Duration>) -> Result<(), LoginError> {
    match waits {
        Some(retry_after) => {
            metrics::counter!("abide_logins_total", "end" => "throttled").increment(1);
            Err(LoginError::Throttled { retry_after })
        }
        None => Ok(()),
    }
}

async fn factor_is_on(forge: &Forge, user: UserId) -> Result<bool, Fault> {
    let found = totp::get(&mut *forge.store().read().await?, user).await?;
    Ok(found.is_some_and(|totp| totp.confirmed_at.is_some()))
}

/// Checks a TOTP code or a recovery code, and opens a session.
#[boxed]
pub async fn second_factor(
    forge: &Forge,
    ticket: &str,
    code: &str,
    agent: &str,
    ip: Option<IpAddr>,
) -> Result<Cookie, LoginError> {
    let ticket = Ticket::parse(ticket).ok_or(LoginError::Wrong)?;
    let user = users::by_id(&mut *forge.store().read().await?, ticket.user).await?;
    let user = user.filter(|user| ticket.is_genuine(forge, user)).ok_or(LoginError::Wrong)?;
    if user.suspended_at.is_some() {
        return Err(LoginError::Suspended);
    }
    let limit = throttle::limit(BY_FACTOR, forge.settings().login.by_factor());
    let opening = Opening::new(forge, user.id, agent, ip);
    let unit = Unit { forge: forge.clone(), user, limit, code: code.to_owned(), opening };
    match forge.store().write(unit, |tx, unit| Box::pin(check(tx, unit))).await? {
        Verdict::In(cookie) => {
            metrics::counter!("abide_logins_total", "end" => "in").increment(1);
            Ok(cookie)
        }
        Verdict::Wrong => Err(LoginError::Wrong),
        Verdict::Throttled(wait) => throttled(Some(wait)).and(Err(LoginError::Wrong)),
    }
}

struct Unit {
    forge: Forge,
    user: User,
    limit: Limit,
    code: String,
    opening: Opening,
}

/// Not an error, because an error would roll the count back.
enum Verdict {
    In(Cookie),
    Wrong,
    Throttled(Duration),
}

async fn check(tx: &mut Tx, unit: &Unit) -> Result<Verdict, LoginError> {
    let account = unit.user.id.to_string();
    if let Some(wait) = throttles::hit(tx, unit.limit, &account).await? {
        return Ok(Verdict::Throttled(wait));
    }
    if !factor::use_up(tx, &unit.forge, unit.user.id, &unit.code).await? {
        return Ok(Verdict::Wrong);
    }
    throttles::clear(tx, BY_FACTOR, &account).await?;
    ensure_unchanged(tx, &unit.user).await?;
    unit.opening.write(tx).await?;
    Ok(Verdict::In(unit.opening.cookie()))
}

/// Opens a session for an authenticated user, unless the account changed since it was loaded.
pub(super) async fn open_unchanged(
    forge: &Forge,
    user: &User,
    agent: &str,
    ip: Option<IpAddr>,
) -> Result<Cookie, LoginError> {
    let unit = (user.clone(), Opening::new(forge, user.id, agent, ip));
    let opened = forge.store().write(unit, |tx, (user, opening)| {
        Box::pin(async move {
            ensure_unchanged(tx, user).await?;
            opening.write(tx).await?;
            Ok::<_, LoginError>(opening.cookie())
        })
    });
    let cookie = opened.await?;
    metrics::counter!("abide_logins_total", "end" => "in").increment(1);
    Ok(cookie)
}

/// Opens a session for an account that was just created.
#[boxed]
pub async fn open_session(forge: &Forge, user: UserId, agent: &str, ip: Option<IpAddr>) -> Result<Cookie, Fault> {
    let opening = Opening::new(forge, user, agent, ip);
    forge
        .store()
        .write(opening, |tx, opening| {
            Box::pin(async move {
                opening.write(tx).await?;
                Ok(opening.cookie())
            })
        })
        .await
}
