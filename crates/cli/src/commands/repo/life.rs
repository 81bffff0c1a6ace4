//! Commands that change a repository. Each prints one line with the result and its consequence, or JSON.

use super::Target;
use super::show::{describe, describe_offer};
use crate::commands::user;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_core::lifecycle::Action;
use abide_core::repo::Visibility;
use abide_forge::repos::find::{self, Meant};
use abide_forge::repos::rename::Renamed;
use abide_forge::repos::{self, Repo, marks, transfer};
use abide_forge::{Caller, Forge};
use serde_json::{Value, json};

pub(super) async fn rename(forge: &Forge, target: &Target, new_name: &str) -> Result<(), Failure> {
    let before = target.live(forge).await?;
    let Renamed { repo, replaced } = repos::rename::rename(forge, &Caller::operator(), &before, new_name).await?;
    let mut said = format!("renamed {} to {}; the old URL redirects", before.slug(), repo.slug());
    if repo.name.folds(new_name) {
        said += "; repository names are lowercase";
    }
    if replaced {
        said += "; the name redirected to another repository until now";
    }
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn hand_over(forge: &Forge, target: &Target, to: &str) -> Result<(), Failure> {
    let before = target.live(forge).await?;
    user(forge, to).await?;
    let repo = transfer::hand_over(forge, &Caller::operator(), &before, to).await?;
    let said = format!("{} is now {}; the old URL redirects", before.slug(), repo.slug());
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn offer(forge: &Forge, target: &Target, to: &str) -> Result<(), Failure> {
    let repo = target.live(forge).await?;
    user(forge, to).await?;
    let offer = transfer::offer(forge, &Caller::operator(), &repo, to).await?;
    let said = format!(
        "offered {} to {}, who can accept or decline until {}",
        repo.slug(),
        offer.transfer.recipient_name.as_ref().map_or(to, |name| name.as_str()),
        offer.transfer.expires_at
    );
    print_result(forge, target, &repo, &said, &[("offer", describe_offer(&offer))]);
    Ok(())
}

pub(super) async fn archive(forge: &Forge, target: &Target) -> Result<(), Failure> {
    let repo = marks::archive(forge, &Caller::operator(), &target.live(forge).await?).await?;
    let said = format!("archived {}: it is read-only until `abide repo unarchive`", repo.slug());
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn unarchive(forge: &Forge, target: &Target) -> Result<(), Failure> {
    let repo = marks::unarchive(forge, &Caller::operator(), &target.live(forge).await?).await?;
    print_result(forge, target, &repo, &format!("unarchived {}: it accepts pushes again", repo.slug()), &[]);
    Ok(())
}

pub(super) async fn set_visibility(forge: &Forge, target: &Target, to: Visibility) -> Result<(), Failure> {
    let before = target.live(forge).await?;
    let repo = marks::set_visibility(forge, &Caller::operator(), &before, to).await?;
    let said = match (before.state().holds(Action::SetVisibility(to)), to) {
        (true, _) => format!("{} is already {to}", repo.slug()),
        (false, Visibility::Private) => {
            format!(
                "{} is now private: only its owner and collaborators can read it; existing clones are not affected",
                repo.slug()
            )
        }
        (false, Visibility::Public) => format!("{} is now public: everyone can read it", repo.slug()),
    };
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn delete(forge: &Forge, target: &Target) -> Result<(), Failure> {
    let repo = target.live(forge).await?;
    let until = repos::delete::delete(forge, &Caller::operator(), &repo).await?;
    let said = format!("deleted {}; `abide repo restore {}` restores it until {until}", repo.slug(), repo.id);
    let repo = find::for_operator(forge, &repo.id.to_string(), Meant::Deleted).await?;
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn restore(forge: &Forge, target: &Target, name: Option<&str>) -> Result<(), Failure> {
    let before = target.deleted(forge).await?;
    let repo = repos::restore::restore(forge, &Caller::operator(), &before.id.to_string(), name).await?;
    let mut said = match repo.name == before.name {
        true => format!("restored {}", repo.slug()),
        false => format!("restored {} as {}", before.slug(), repo.slug()),
    };
    if name.is_some_and(|typed| repo.name.folds(typed)) {
        said += "; repository names are lowercase";
    }
    print_result(forge, target, &repo, &said, &[]);
    Ok(())
}

pub(super) async fn purge(forge: &Forge, target: &Target, confirm: &str) -> Result<(), Failure> {
    let repo = target.deleted(forge).await?;
    if !confirm.eq_ignore_ascii_case(&repo.slug()) {
        let refused = format!("--confirm is {confirm}, but the repository is {}", repo.slug());
        return Err(Failure::refused(refused).hint("nothing was deleted; check the name"));
    }
    repos::purge::purge(forge, &Caller::operator(), &repo).await?;
    let said = format!("permanently deleted {} (id {}) with all its data", repo.slug(), repo.id);
    print_result(forge, target, &repo, &said, &[("state", json!("removed"))]);
    Ok(())
}

/// Prints the result. JSON contains the repository, with the fields of `more` added or replaced.
fn print_result(forge: &Forge, target: &Target, repo: &Repo, said: &str, more: &[(&str, Value)]) {
    if !target.json {
        say!("{said}");
        return;
    }
    let mut value = describe(forge, repo);
    value["message"] = said.into();
    for (field, content) in more {
        value[*field] = content.clone();
    }
    show::json(&value);
}
