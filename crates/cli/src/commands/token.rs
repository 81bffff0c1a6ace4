//! `abide token`

use super::{user, with_forge};
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_core::InputError as _;
use abide_core::scope::{Scope, Scopes};
use abide_forge::Caller;
use abide_forge::accounts::add_token::{AddTokenError, add_token};
use abide_forge::accounts::tokens;
use serde_json::json;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Create a token and print only the token. It is not shown again.
    Add {
        /// User name.
        name: String,
        /// Scopes, separated by commas: repo:read, repo (repositories and git), user:read, user (profile), keys:read,
        /// keys (SSH keys), notifications, hooks (webhooks), admin (site administration). With :read, only reading.
        #[arg(long)]
        scopes: String,
        /// Name of the token.
        #[arg(long, default_value = "command line")]
        label: String,
        /// Expiration in days [default: never].
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// List a user's tokens, without their secrets.
    List {
        /// User name.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token.
    Revoke {
        /// User name.
        name: String,
        /// Token id.
        id: i64,
    },
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    let operator = Caller::anonymous(None);
    with_forge(config, async |forge| match action {
        Action::Add { name, scopes, label, expires } => {
            let words: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
            let scopes = Scopes::parse(&scopes).map_err(|error| {
                Failure::usage(error.to_string()).hint(format!("valid scopes: {}", words.join(", ")))
            })?;
            let account = user(forge, &name).await?;
            let day = std::time::Duration::from_secs(86_400);
            let end = expires.map(|days| forge.clock().now().plus(day.saturating_mul(days)));
            let secret =
                add_token(forge, &operator, account.id, &label, scopes, end).await.map_err(|error| match error {
                    AddTokenError::Fault(fault) => fault.into(),
                    refused => Failure::refused(refused.with_field()),
                })?;
            say!("{secret}");
            Ok(())
        }
        Action::List { name, json } => {
            let account = user(forge, &name).await?;
            show_all(&tokens::list(forge, account.id).await?, forge.clock().now(), json);
            Ok(())
        }
        Action::Revoke { name, id } => {
            let account = user(forge, &name).await?;
            if !tokens::revoke(forge, &operator, account.id, id).await? {
                return Err(Failure::not_found(format!("{name} has no active token {id}")));
            }
            say!("revoked token {id} of {name}");
            Ok(())
        }
    })
    .await
}

fn show_all(all: &[abide_forge::accounts::Token], now: abide_core::Timestamp, as_json: bool) {
    let time = |at: Option<abide_core::Timestamp>| at.map(|at| at.to_string());
    if as_json {
        let items = all.iter().map(|token| {
            json!({
                "id": token.id, "label": token.label, "hint": token.hint, "scopes": token.scopes.to_string(),
                "created_at": token.created_at.to_string(), "expires_at": time(token.expires_at),
                "last_used_at": time(token.last_used_at), "live": token.is_live(now),
            })
        });
        return show::json(&items.collect());
    }
    let rows: Vec<_> = all
        .iter()
        .map(|token| {
            let state = if token.is_live(now) { "" } else { "ended" };
            let used = time(token.last_used_at).unwrap_or_else(|| "never".into());
            vec![
                token.id.to_string(),
                token.label.clone(),
                format!("…{}", token.hint),
                token.scopes.to_string(),
                used,
                state.into(),
            ]
        })
        .collect();
    show::table(&["ID", "LABEL", "TOKEN", "SCOPES", "LAST USED", "STATE"], &rows);
}
