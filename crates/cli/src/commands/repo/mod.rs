//! `abide repo`: `show.rs` has the reading commands, `life.rs` the changing ones.

mod life;
mod show;

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show::say;
use abide_core::repo::Visibility;
use abide_forge::Forge;
use abide_forge::repos::find::{self, Meant};
use abide_forge::repos::{Repo, list};
use clap::builder::{PossibleValuesParser, TypedValueParser};

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// List all repositories, including deleted ones.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one repository, deleted or not.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Print the path of a repository on disk.
    Path {
        /// owner/name or id.
        repo: String,
    },
    /// Rename a repository. The old URL redirects.
    Rename {
        #[command(flatten)]
        target: Target,
        /// New name.
        new_name: String,
    },
    /// Transfer a repository to another user at once. The old URL redirects.
    Transfer {
        #[command(flatten)]
        target: Target,
        /// New owner.
        user: String,
        /// Send a transfer offer, which the user accepts or declines.
        #[arg(long)]
        offer: bool,
    },
    /// Archive a repository: it becomes read-only.
    Archive {
        #[command(flatten)]
        target: Target,
    },
    /// Unarchive a repository.
    Unarchive {
        #[command(flatten)]
        target: Target,
    },
    /// Make a repository public or private.
    Visibility {
        #[command(flatten)]
        target: Target,
        /// public or private.
        #[arg(value_parser = visibilities())]
        visibility: Visibility,
    },
    /// Delete a repository. It can be restored during the grace period.
    Delete {
        #[command(flatten)]
        target: Target,
    },
    /// Restore a deleted repository.
    Restore {
        #[command(flatten)]
        target: Target,
        /// Restore with this name instead.
        #[arg(long, value_name = "NEW")]
        name: Option<String>,
    },
    /// Permanently delete a deleted repository at once, with all its data.
    Purge {
        #[command(flatten)]
        target: Target,
        /// owner/name, repeated to confirm: this cannot be undone.
        #[arg(long, value_name = "OWNER/NAME")]
        confirm: String,
    },
}

fn visibilities() -> impl TypedValueParser<Value = Visibility> {
    let words = PossibleValuesParser::new(Visibility::ALL.iter().map(|word| word.as_str()));
    words.map(|word| word.parse().expect("it is one of the possible ones"))
}

/// Repository of a command, and its output format.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// owner/name or id. Use the id if several deleted repositories had the name.
    repo: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::List { json } => show::all(forge, json).await,
        Action::Show { target } => show::one(forge, &target.live(forge).await?, target.json).await,
        Action::Path { repo } => {
            say!("{}", list::path(forge, &find::for_operator(forge, &repo, Meant::Live).await?).display());
            Ok(())
        }
        Action::Rename { target, new_name } => life::rename(forge, &target, &new_name).await,
        Action::Transfer { target, user, offer: false } => life::hand_over(forge, &target, &user).await,
        Action::Transfer { target, user, offer: true } => life::offer(forge, &target, &user).await,
        Action::Archive { target } => life::archive(forge, &target).await,
        Action::Unarchive { target } => life::unarchive(forge, &target).await,
        Action::Visibility { target, visibility } => life::set_visibility(forge, &target, visibility).await,
        Action::Delete { target } => life::delete(forge, &target).await,
        Action::Restore { target, name } => life::restore(forge, &target, name.as_deref()).await,
        Action::Purge { target, confirm } => life::purge(forge, &target, &confirm).await,
    })
    .await
}

impl Target {
    /// The repository; a live one is preferred.
    async fn live(&self, forge: &Forge) -> Result<Repo, Failure> {
        Ok(find::for_operator(forge, &self.repo, Meant::Live).await?)
    }

    /// The repository; a deleted one is preferred.
    async fn deleted(&self, forge: &Forge) -> Result<Repo, Failure> {
        Ok(find::for_operator(forge, &self.repo, Meant::Deleted).await?)
    }
}
