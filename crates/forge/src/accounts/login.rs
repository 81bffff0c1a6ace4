//! Logging in: a password, then perhaps a second factor, then a session.
//!
//! The answers have one shape: an account that does not exist costs one password check like any other and is refused in
//! the same words. That an account is suspended is only told to who knows its password.

use super::sessions::{Cookie, Opening};
use super::ticket::{self, Ticket as Parsed};
use super::{one_time, password, second_factor as factor, throttle};
use crate::{Fault, Forge};
use abide_core::{UserId, UserName};
use abide_store::throttles::{self, Limit};
use abide_store::users::{self, User};
use abide_store::{StoreError, Tx, totp};
use std::net::IpAddr;
use std::time::Duration;

pub(super) const BY_PLACE: &str = "login:ip";
const BY_ACCOUNT: &str = "login:account";
const BY_FACTOR: &str = "login:factor";

/// What was typed, and by whom.
pub struct Request {
    /// A name or an address.
    pub login: String,
    /// As typed.
    pub password: String,
    /// What the browser calls itself.
    pub agent: String,
    /// From where.
    pub ip: Option<IpAddr>,
}

/// How far a right password leads.
pub enum Outcome {
    /// Logged in.
    In(Cookie),
    /// A code is needed too.
    SecondFactor(Ticket),
}

/// To be handed in with the code, within ten minutes.
pub struct Ticket(pub String);

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// There is no such account, or that is not its password or code.
    #[error("wrong user name or password")]
    Wrong,
    /// Too many tries.
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled {
        /// When to try again.
        retry_after: Duration,
    },
    /// The password is right, but the account may not be used.
    #[error("this account is suspended; ask the site administrator")]
    Suspended,
    /// The machine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Where tries are counted: by place, and by account from that place.
#[derive(Clone)]
struct Counted {
    place: String,
    account: String,
}

impl Counted {
    /// By what was typed, whether that is an account or not: counting the name and the addresses of one together would
    /// tell that they belong together. Hashed, because people type passwords into the wrong field.
    fn new(typed: &str, ip: Option<IpAddr>) -> Self {
        let place = throttle::place(ip);
        let typed = hex::encode(&one_time::hash(&typed.to_lowercase())[..16]);
        Self { account: format!("{typed} from {place}"), place }
    }
}

/// Checks a password and begins a session, or asks for the second factor.
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
                throttles::forgive(tx, BY_PLACE, &counted.place).await?;
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
        (None, true) => Ok(Outcome::SecondFactor(Ticket(ticket::issue(forge, &user)))),
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

/// A password that was changed, or a suspension that came, while this login was under way ends every login: this one must
/// not slip in behind it. Holding the account puts the two in order.
async fn ensure_unchanged(tx: &mut Tx, user: &User) -> Result<(), LoginError> {
    let now = users::lock(tx, user.id).await?;
    let same = now.is_some_and(|now| now.password_hash == user.password_hash && now.suspended_at.is_none());
    if same { Ok(()) } else { Err(LoginError::Wrong) }
}

/// Counts a try before the password is looked at, so that tries side by side are all counted.
async fn count(forge: &Forge, counted: Counted) -> Result<(), LoginError> {
    let people = &forge.settings().people;
    let limits =
        (throttle::limit(BY_PLACE, people.login_per_ip), throttle::limit(BY_ACCOUNT, people.login_per_account));
    let unit = (counted, limits);
    let waits: Option<Duration> = forge
        .store()
        .write(unit, |tx, (counted, limits)| {
            Box::pin(async move {
                // A place that is shut adds no rows for accounts.
                match throttles::hit(tx, limits.0, &counted.place).await? {
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

/// Checks a code of the app, or a recovery code, and begins a session.
pub async fn second_factor(
    forge: &Forge,
    ticket: &str,
    code: &str,
    agent: &str,
    ip: Option<IpAddr>,
) -> Result<Cookie, LoginError> {
    let ticket = Parsed::parse(ticket).ok_or(LoginError::Wrong)?;
    let user = users::by_id(&mut *forge.store().read().await?, ticket.user).await?;
    let user = user.filter(|user| ticket.is_genuine(forge, user)).ok_or(LoginError::Wrong)?;
    if user.suspended_at.is_some() {
        return Err(LoginError::Suspended);
    }
    let limit = throttle::limit(BY_FACTOR, forge.settings().people.second_factor);
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

/// Not an error: what was counted must stay.
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

/// Begins a session for someone who has proved who they are, unless that has changed since they were looked up.
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

/// Begins a session for someone who has just made their account.
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
