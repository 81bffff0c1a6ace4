//! `abide repo`: `show.rs` looks, `life.rs` changes.

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
    /// Show all repositories, deleted ones included.
    List {
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Show one repository, deleted or not.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Print where a repository is on disk.
    Path {
        /// owner/name or id.
        repo: String,
    },
    /// Give a repository another name. The old address keeps leading to it.
    Rename {
        #[command(flatten)]
        target: Target,
        /// The other name.
        new_name: String,
    },
    /// Hand a repository over to someone, at once. The old address keeps leading to it.
    Transfer {
        #[command(flatten)]
        target: Target,
        /// To whom.
        user: String,
        /// Ask them first: they accept or decline.
        #[arg(long)]
        offer: bool,
    },
    /// Make a repository read-only.
    Archive {
        #[command(flatten)]
        target: Target,
    },
    /// Make an archived repository writable again.
    Unarchive {
        #[command(flatten)]
        target: Target,
    },
    /// Change who may read a repository.
    Visibility {
        #[command(flatten)]
        target: Target,
        /// public or private.
        #[arg(value_parser = visibilities())]
        visibility: Visibility,
    },
    /// Delete a repository. It can be restored for some time.
    Delete {
        #[command(flatten)]
        target: Target,
    },
    /// Restore a deleted repository.
    Restore {
        #[command(flatten)]
        target: Target,
        /// Under another name.
        #[arg(long, value_name = "NEW")]
        name: Option<String>,
    },
    /// Remove a deleted repository for good, at once, with all of its content.
    Purge {
        #[command(flatten)]
        target: Target,
        /// owner/name of it, typed once more: there is no way back.
        #[arg(long, value_name = "OWNER/NAME")]
        confirm: String,
    },
}

fn visibilities() -> impl TypedValueParser<Value = Visibility> {
    let words = PossibleValuesParser::new(Visibility::ALL.iter().map(|word| word.as_str()));
    words.map(|word| word.parse().expect("it is one of the possible ones"))
}

/// Which repository a command is about, and for whom it prints.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// owner/name or id; a deleted one has a name too, unless several had it.
    repo: String,
    /// JSON instead of lines.
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
    /// The repository, the live one if there is one.
    async fn live(&self, forge: &Forge) -> Result<Repo, Failure> {
        Ok(find::for_operator(forge, &self.repo, Meant::Live).await?)
    }

    /// The repository, the deleted one if there is one.
    async fn deleted(&self, forge: &Forge) -> Result<Repo, Failure> {
        Ok(find::for_operator(forge, &self.repo, Meant::Deleted).await?)
    }
}
