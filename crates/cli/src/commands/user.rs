//! `abide user`

use super::secret::secret;
use super::{user, with_forge};
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_core::UserId;
use abide_core::words::UnknownWord;
use abide_forge::accounts::add_user::{AddUserError, Request, add_user};
use abide_forge::accounts::admin::{AdminError, release_name_by_operator};
use abide_forge::accounts::delete::{DeleteError, delete_by_operator};
use abide_forge::accounts::invites::{self, InviteError};
use abide_forge::accounts::rename::{RenameError, rename_by_operator};
use abide_forge::accounts::{list, password, reset_factor, suspend};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Add an account.
    Add {
        /// Its name.
        name: String,
        /// Its address.
        #[arg(long)]
        email: String,
        /// Read the password from standard input instead of asking for it; it is never taken from the command line.
        #[arg(long)]
        password_stdin: bool,
        /// It may administer the site.
        #[arg(long)]
        admin: bool,
        /// The address is not known to be theirs: they have to prove that they read it before mail goes there.
        #[arg(long)]
        unverified: bool,
    },
    /// Set a new password.
    Passwd {
        /// Whose.
        name: String,
        /// Read the password from standard input instead of asking for it; it is never taken from the command line.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Keep an account from changing anything; its tokens and keys open nothing, its logins end.
    Suspend {
        /// Whose.
        name: String,
    },
    /// Lift a suspension, of an account or of a nostr key whose account was deleted while suspended.
    Unsuspend {
        /// The account's name, or a key (npub1...)
        name: String,
    },
    /// Turn off the two-factor login of an account whose owner lost it. Its logins end, and its address is told.
    #[command(name = "reset-2fa")]
    ResetSecondFactor {
        /// Whose.
        name: String,
    },
    /// Give an account another name. The old one keeps leading to it.
    Rename {
        /// Whose.
        name: String,
        /// The other name.
        new_name: String,
    },
    /// Delete an account. Its repositories are deleted and can be restored for a while; its name stays taken.
    Remove {
        /// Whose.
        name: String,
        /// What becomes of its issues and comments.
        #[arg(long, default_value = "kept", value_parser = ["kept", "removed"])]
        content: String,
        /// Do it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Release an old name, also that of a deleted account: it leads nowhere, and anyone may take it.
    Release {
        /// The old name.
        name: String,
    },
    /// Invite someone and print the link that lets them sign up, alone, on standard output. It is shown this once.
    Invite {
        /// Where to send it too.
        #[arg(long)]
        email: Option<String>,
    },
    /// Show all accounts.
    List {
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
}

impl Action {
    /// Whether it makes sense before there is a data directory.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::Add { .. } | Self::Invite { .. })
    }
}

/// The end of a line about a user name.
fn said_if_folded(folded: bool) -> &'static str {
    if folded { "; user names are lower case" } else { "" }
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::Add { name, email, admin, password_stdin, unverified } => {
            let password = secret(password_stdin)?;
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
                let rule = format!("a password has {} to {} characters", password::MIN_LEN, password::MAX_LEN);
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
            say!("turned off the two-factor login of {name}");
            Ok(())
        }
        Action::Rename { name, new_name } => {
            let account = user(forge, &name).await?;
            let renamed = rename_by_operator(forge, account.id, &new_name).await.map_err(|error| match error {
                RenameError::Fault(fault) => fault.into(),
                refused => Failure::refused(refused.to_string()),
            })?;
            say!("renamed {name} to {renamed}{}", said_if_folded(renamed.folds(&new_name)));
            Ok(())
        }
        Action::Remove { name, content, yes } => {
            let account = user(forge, &name).await?;
            let remains = content.parse().map_err(|error: UnknownWord| Failure::usage(error.to_string()))?;
            if !yes {
                return Err(Failure::usage(format!("deleting the account {name} cannot be undone"))
                    .hint("say --yes if you mean it; `abide user suspend` only keeps someone out"));
            }
            delete_by_operator(forge, account.id, remains).await.map_err(|error| match error {
                DeleteError::Access(access) => access.into(),
                refused => Failure::refused(refused.to_string()),
            })?;
            say!("deleted {name}; `abide repo list` shows the repositories that can be restored");
            Ok(())
        }
        Action::Release { name } => {
            let missing = || Failure::not_found(format!("{name} is nobody's old name"));
            let old = name.parse().map_err(|_| missing())?;
            if !release_name_by_operator(forge, &old).await? {
                return Err(missing());
            }
            say!("released {old}");
            Ok(())
        }
        Action::Invite { email } => {
            let link = invites::create_by_operator(forge, email).await.map_err(|error| match error {
                InviteError::Access(access) => access.into(),
                refused => Failure::refused(refused.to_string()),
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
        refused => Failure::refused(refused.to_string()),
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
