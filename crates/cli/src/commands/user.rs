//! `abide user`

use super::secret::secret;
use super::{user, with_forge};
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_core::words::UnknownWord;
use abide_core::{InputError as _, UserId};
use abide_forge::By;
use abide_forge::accounts::add_user::{AddUserError, Request, add_user};
use abide_forge::accounts::admin::{AdminError, release_name};
use abide_forge::accounts::delete::{DeleteError, delete_by_operator};
use abide_forge::accounts::invites::{self, InviteError};
use abide_forge::accounts::rename::{RenameError, rename_by_operator};
use abide_forge::accounts::{list, password, reset_factor, suspend};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Add a user.
    Add {
        /// User name.
        name: String,
        /// E-mail address.
        #[arg(long)]
        email: String,
        /// Read the password from standard input instead of prompting. Passwords are never taken from the command line.
        #[arg(long)]
        password_stdin: bool,
        /// Make the user a site administrator.
        #[arg(long)]
        admin: bool,
        /// Leave the address unverified: the user has to verify it before it gets other mail.
        #[arg(long)]
        unverified: bool,
    },
    /// Set a user's password.
    Passwd {
        /// User name.
        name: String,
        /// Read the password from standard input instead of prompting. Passwords are never taken from the command line.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Suspend a user: sessions end, and tokens and keys stop working.
    Suspend {
        /// User name.
        name: String,
    },
    /// Lift the suspension of a user, or of a nostr key whose account was deleted while suspended.
    Unsuspend {
        /// User name, or nostr key (npub1...)
        name: String,
    },
    /// Turn off two-factor authentication for a user who lost it. Their sessions end, and they get a mail.
    #[command(name = "reset-2fa")]
    ResetSecondFactor {
        /// User name.
        name: String,
    },
    /// Rename a user. The old name redirects to the new one.
    Rename {
        /// User name.
        name: String,
        /// New user name.
        new_name: String,
    },
    /// Delete a user. Their repositories can be restored during the grace period; the user name stays reserved.
    Remove {
        /// User name.
        name: String,
        /// Keep or remove the user's issues and comments.
        #[arg(long, default_value = "kept", value_parser = ["kept", "removed"])]
        content: String,
        /// Confirm the deletion.
        #[arg(long)]
        yes: bool,
    },
    /// Release an old user name, also of a deleted user: it no longer redirects, and anyone may take it.
    Release {
        /// Old user name.
        name: String,
    },
    /// Create an invitation and print only its link. The link is not shown again.
    Invite {
        /// Also send the invitation to this address.
        #[arg(long)]
        email: Option<String>,
    },
    /// List all users.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Action {
    /// Whether the command may create the data directory.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::Add { .. } | Self::Invite { .. })
    }
}

/// Note for a user name that was converted to lowercase.
fn said_if_folded(folded: bool) -> &'static str {
    if folded { "; user names are lowercase" } else { "" }
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::Add { name, email, admin, password_stdin, unverified } => {
            let password = secret(password_stdin)?.into();
            let request = Request { name, email, password, site_admin: admin, verified: !unverified };
            let typed = request.name.clone();
            add_user(forge, request).await.map_err(failure)?;
            let added = typed.to_ascii_lowercase();
            say!("added {added}{}", said_if_folded(added != typed));
            Ok(())
        }
        Action::Passwd { name, password_stdin } => {
            let account = user(forge, &name).await?;
            if !suspend::set_password(forge, account.id, secret(password_stdin)?).await? {
                let rule = format!("a password must have {} to {} characters", password::MIN_LEN, password::MAX_LEN);
                return Err(Failure::refused(rule));
            }
            say!("changed the password of {name}");
            Ok(())
        }
        Action::Suspend { name } => set_suspended(forge, &name, true).await,
        Action::Unsuspend { name } => set_suspended(forge, &name, false).await,
        Action::ResetSecondFactor { name } => {
            let account = user(forge, &name).await?;
            reset_factor::by_operator(forge, account.id).await.map_err(|error| match error {
                AdminError::Access(access) => access.into(),
                AdminError::Refused(refusal) => Failure::refused(refusal.to_string()),
            })?;
            say!("turned off two-factor authentication of {name}");
            Ok(())
        }
        Action::Rename { name, new_name } => {
            let account = user(forge, &name).await?;
            let renamed = rename_by_operator(forge, account.id, &new_name).await.map_err(|error| match error {
                RenameError::Fault(fault) => fault.into(),
                refused => Failure::refused(refused.with_field()),
            })?;
            say!("renamed {name} to {renamed}{}", said_if_folded(renamed.folds(&new_name)));
            Ok(())
        }
        Action::Remove { name, content, yes } => {
            let account = user(forge, &name).await?;
            let remains = content.parse().map_err(|error: UnknownWord| Failure::usage(error.to_string()))?;
            if !yes {
                return Err(Failure::usage(format!(
                    "deleting the account {name} cannot be undone; its repositories can be restored for some time"
                ))
                .hint("confirm with --yes; `abide user suspend` locks a user out without deleting anything"));
            }
            delete_by_operator(forge, account.id, remains).await.map_err(|error| match error {
                DeleteError::Access(access) => access.into(),
                refused => Failure::refused(refused.with_field()),
            })?;
            say!("deleted {name}; `abide repo list` shows the repositories that can be restored");
            Ok(())
        }
        Action::Release { name } => {
            let missing = || Failure::not_found(format!("{name} is not an old user name"));
            let old = name.parse().map_err(|_| missing())?;
            if !release_name(forge, &By::Operator, &old).await? {
                return Err(missing());
            }
            say!("released {old}");
            Ok(())
        }
        Action::Invite { email } => {
            let link = invites::create(forge, &By::Operator, email).await.map_err(|error| match error {
                InviteError::Access(access) => access.into(),
                refused => Failure::refused(refused.with_field()),
            })?;
            say!("{link}");
            Ok(())
        }
        Action::List { json } => show_all(forge, json).await,
    })
    .await
}

fn failure(error: AddUserError) -> Failure {
    match error {
        AddUserError::Fault(fault) => fault.into(),
        refused => Failure::refused(refused.with_field()),
    }
}

async fn set_suspended(forge: &abide_forge::Forge, name: &str, suspended: bool) -> Result<(), Failure> {
    if !suspended && name.starts_with("npub1") && suspend::readmit_key(forge, name).await? {
        say!("unsuspended the key {name}");
        return Ok(());
    }
    let account = user(forge, name).await?;
    suspend::set_suspended(forge, account.id, suspended).await?;
    say!("{} {name}", if suspended { "suspended" } else { "unsuspended" });
    Ok(())
}

async fn show_all(forge: &abide_forge::Forge, as_json: bool) -> Result<(), Failure> {
    const PAGE: i64 = 500;
    let mut all = Vec::new();
    let mut after = UserId::new(0);
    loop {
        let page = list(forge, after, PAGE).await?;
        let short = page.len() < PAGE as usize;
        after = page.last().map_or(after, |last| last.id);
        all.extend(page);
        if short {
            break;
        }
    }
    let name = |user: &abide_forge::accounts::User| user.handle().map(|handle| handle.to_string());
    if as_json {
        let items = all.iter().map(|user| {
            json!({
                "id": user.id.get(), "name": name(user), "email": user.email, "site_admin": user.site_admin,
                "suspended": user.suspended_at.is_some(), "created_at": user.created_at.to_string(),
            })
        });
        show::json(&items.collect());
        return Ok(());
    }
    let rows: Vec<_> = all
        .iter()
        .map(|user| {
            let state = match (user.suspended_at, user.site_admin) {
                (Some(_), _) => "suspended",
                (None, true) => "admin",
                (None, false) => "",
            };
            let email = user.email.clone().unwrap_or_default();
            vec![user.id.to_string(), name(user).unwrap_or_default(), email, state.into(), user.created_at.to_string()]
        })
        .collect();
    show::table(&["ID", "NAME", "EMAIL", "STATE", "SINCE"], &rows);
    Ok(())
}
