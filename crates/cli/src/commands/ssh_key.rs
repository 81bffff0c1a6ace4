//! `abide ssh-key`

use super::{user, with_forge};
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_core::InputError as _;
use abide_forge::Caller;
use abide_forge::accounts::ssh_keys::{self, AddKeyError};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Add a public key to a user.
    Add {
        /// User name.
        name: String,
        /// Public key file (.pub).
        file: PathBuf,
        /// Title [default: the comment in the key].
        #[arg(long, default_value = "", hide_default_value = true)]
        title: String,
    },
    /// List a user's keys.
    List {
        /// User name.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a key.
    Remove {
        /// User name.
        name: String,
        /// Key id.
        id: i64,
    },
}

/// Maximum number of listed keys.
const MAX: i64 = 1000;

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    let operator = Caller::anonymous(None);
    with_forge(config, async |forge| match action {
        Action::Add { name, file, title } => {
            let line = std::fs::read_to_string(&file)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
            let account = user(forge, &name).await?;
            let key =
                ssh_keys::add(forge, &operator, account.id, &title, &line).await.map_err(|error| match error {
                    AddKeyError::Fault(fault) => fault.into(),
                    refused => Failure::refused(refused.with_field()),
                })?;
            say!("added {} for {name}", key.fingerprint);
            Ok(())
        }
        Action::List { name, json } => {
            let account = user(forge, &name).await?;
            let (keys, _) = ssh_keys::list(forge, account.id, MAX, 0).await?;
            if json {
                let items = keys.iter().map(|key| {
                    json!({
                        "id": key.id, "title": key.title, "fingerprint": key.fingerprint, "key": key.public_key,
                        "created_at": key.created_at.to_string(),
                        "last_used_at": key.last_used_at.map(|at| at.to_string()),
                    })
                });
                show::json(&items.collect());
                return Ok(());
            }
            let rows: Vec<_> = keys
                .iter()
                .map(|key| {
                    let used = key.last_used_at.map_or_else(|| "never".into(), |at| at.to_string());
                    vec![key.id.to_string(), key.title.clone(), key.fingerprint.clone(), used]
                })
                .collect();
            show::table(&["ID", "TITLE", "FINGERPRINT", "LAST USED"], &rows);
            Ok(())
        }
        Action::Remove { name, id } => {
            let account = user(forge, &name).await?;
            if !ssh_keys::remove(forge, &operator, account.id, id).await? {
                return Err(Failure::not_found(format!("{name} has no key {id}")));
            }
            say!("removed key {id} of {name}");
            Ok(())
        }
    })
    .await
}
