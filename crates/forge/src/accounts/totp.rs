//! Second factor: an app that shows a new code every thirty seconds (TOTP).

use super::confirm::{self, ConfirmError};
use super::second_factor as factor;
use super::sessions::Viewer;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::{Fault, Forge};
use abide_core::InputError;
use abide_macros::boxed;
use abide_store::StoreError;
use abide_store::accounts::totp;
use qrcode::{Color, EcLevel, QrCode};
use serde_json::json;
use std::fmt::Write as _;

/// Data for the app: scanned, or typed by hand.
pub struct Enrolment {
    /// The secret, for typing.
    pub secret_base32: String,
    /// The secret with the account name, in the format of the apps.
    pub otpauth_url: String,
    /// The URL as a QR code.
    pub qr_svg: String,
}

/// Why the second factor was not changed.
#[derive(Debug, thiserror::Error)]
pub enum TotpError {
    /// It is on already.
    #[error("two-factor authentication is already on; turn it off first to set it up again")]
    On,
    /// It is off, or the set-up was not begun.
    #[error("two-factor authentication is not set up; start with the QR code")]
    Off,
    #[error("wrong code; check your phone's clock")]
    Code,
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for TotpError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Code => Some("code"),
            Self::Confirm(error) => error.field(),
            Self::On | Self::Off | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for TotpError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Whether login asks for a code.
#[boxed]
pub async fn is_on(forge: &Forge, viewer: &Viewer) -> Result<bool, Fault> {
    let found = totp::get(&mut *forge.store().read().await?, viewer.user.id).await?;
    Ok(found.is_some_and(|totp| totp.confirmed_at.is_some()))
}

/// Number of unused recovery codes.
#[boxed]
pub async fn recovery_codes_left(forge: &Forge, viewer: &Viewer) -> Result<i64, Fault> {
    Ok(totp::count_codes(&mut *forge.store().read().await?, viewer.user.id).await?)
}

/// Creates a secret that waits for confirmation. Replaces an unconfirmed one.
#[boxed]
pub async fn begin(forge: &Forge, viewer: &Viewer) -> Result<Enrolment, TotpError> {
    let mut secret = [0; factor::SECRET_LEN];
    forge.random().fill(&mut secret);
    let user = viewer.user.id;
    let sealed = factor::seal(forge, user, &secret);
    let enrolment = enrolment(forge, viewer, &sealed)?;
    let begun: bool = forge
        .store()
        .write((user, sealed), |tx, (user, sealed)| {
            Box::pin(async move { Ok::<_, TotpError>(totp::begin(tx, *user, sealed).await?) })
        })
        .await?;
    if begun { Ok(enrolment) } else { Err(TotpError::On) }
}

/// The unconfirmed secret, to show it again after a wrong code.
#[boxed]
pub async fn pending(forge: &Forge, viewer: &Viewer) -> Result<Option<Enrolment>, Fault> {
    let found = totp::get(&mut *forge.store().read().await?, viewer.user.id).await?;
    let waiting = found.filter(|totp| totp.confirmed_at.is_none());
    waiting.map(|totp| enrolment(forge, viewer, totp.secret.expose())).transpose()
}

fn enrolment(forge: &Forge, viewer: &Viewer, sealed: &[u8]) -> Result<Enrolment, Fault> {
    let unusable = |error: &dyn std::fmt::Display| Fault::Internal(format!("a second factor cannot be shown: {error}"));
    let name = viewer.user.handle().map(|handle| handle.shown().into_owned()).unwrap_or_default();
    let builder = factor::generator(forge, viewer.user.id, sealed)?;
    // The standard separates issuer and account by a colon, and the host may have one before its port.
    let issuer = format!("Abide {}", host(&forge.settings().public_url).replace(':', " "));
    let totp = factor::built(builder.with_account_name(name).with_issuer(Some(issuer)))?;
    let otpauth_url = totp.to_url().map_err(|error| unusable(&error))?;
    let picture = QrCode::with_error_correction_level(&otpauth_url, EcLevel::M).map_err(|error| unusable(&error))?;
    Ok(Enrolment { secret_base32: totp.secret().to_base32(), qr_svg: svg(&picture), otpauth_url })
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// One path of unit squares on white, with the quiet zone that cameras need. It has no style and no script, so every
/// content security policy allows it.
fn svg(code: &QrCode) -> String {
    const QUIET: usize = 4;
    let width = code.width();
    let size = width + 2 * QUIET;
    let mut path = String::new();
    for (index, color) in code.to_colors().into_iter().enumerate() {
        if color == Color::Dark {
            let _ = write!(path, "M{} {}h1v1h-1z", index % width + QUIET, index / width + QUIET);
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" role=\"img\" \
         aria-label=\"QR code of the secret\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{size}v{size}H0z\"/><path fill=\"#000\" d=\"{path}\"/></svg>"
    )
}

/// Turns the second factor on with a first code. Returns the recovery codes, which are shown only once.
#[boxed]
pub async fn confirm(forge: &Forge, viewer: &Viewer, code: &str) -> Result<Vec<String>, TotpError> {
    let (codes, hashes) = factor::recovery_codes(forge, viewer.user.id);
    let unit = (forge.clone(), viewer.user.id, code.to_owned(), hashes, Who::from(&viewer.caller));
    let confirmed: Result<(), TotpError> = forge
        .store()
        .write(unit, |tx, (forge, user, code, hashes, who)| {
            Box::pin(async move {
                let found = totp::lock(tx, *user).await?.ok_or(TotpError::Off)?;
                if found.confirmed_at.is_some() {
                    return Err(TotpError::On);
                }
                let generator = factor::built(factor::generator(forge, *user, found.secret.expose())?)?;
                let step = factor::step_of(&generator, code, tx.now()).ok_or(TotpError::Code)?;
                totp::confirm(tx, *user, step).await?;
                totp::set_codes(tx, *user, hashes).await?;
                audit_account(tx, who, AuditAction::TotpEnabled, json!({ "user_id": user.get() })).await?;
                Ok(())
            })
        })
        .await;
    confirmed.map(|()| codes)
}

/// Turns the second factor off.
#[boxed]
pub async fn disable(forge: &Forge, viewer: &Viewer, password: String) -> Result<(), TotpError> {
    confirm::password(forge, viewer, password).await?;
    let unit = (forge.clone(), viewer.user.id, viewer.user.email.clone(), Who::from(&viewer.caller));
    forge
        .store()
        .write(unit, |tx, (forge, user, email, who)| {
            Box::pin(async move {
                if !totp::remove(tx, *user).await? {
                    return Err(TotpError::Off);
                }
                if let Some(email) = email {
                    mail::enqueue(tx, forge, email, &letters::factor_off(&forge.settings().public_url)).await?;
                }
                audit_account(tx, who, AuditAction::TotpDisabled, json!({ "user_id": user.get() })).await?;
                Ok(())
            })
        })
        .await
}

/// Replaces the recovery codes. Returns the new ones, which are shown only once.
#[boxed]
pub async fn new_recovery_codes(forge: &Forge, viewer: &Viewer, password: String) -> Result<Vec<String>, TotpError> {
    confirm::password(forge, viewer, password).await?;
    let (codes, hashes) = factor::recovery_codes(forge, viewer.user.id);
    let unit = (viewer.user.id, hashes, Who::from(&viewer.caller));
    let replaced: Result<(), TotpError> = forge
        .store()
        .write(unit, |tx, (user, hashes, who)| {
            Box::pin(async move {
                let found = totp::lock(tx, *user).await?.ok_or(TotpError::Off)?;
                if found.confirmed_at.is_none() {
                    return Err(TotpError::Off);
                }
                totp::set_codes(tx, *user, hashes).await?;
                audit_account(tx, who, AuditAction::RecoveryCodesReplaced, json!({ "user_id": user.get() })).await?;
                Ok(())
            })
        })
        .await;
    replaced.map(|()| codes)
}
