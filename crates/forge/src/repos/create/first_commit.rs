//! First commit of a repository: files that are written without a working tree and pushed in the owner's name.

use super::templates::{Choice, chosen, gitignores, licences};
use crate::blocking::blocking;
use crate::git::push;
use crate::{Caller, Fault, Forge};
use abide_core::{Handle, InputError, Oid, RefUpdate, Timestamp};
use abide_git::Incoming;
use abide_git::read::Signature;
use abide_git::write::{WriteError, initial_commit};
use abide_store::accounts::users;
use abide_store::repos::Repo;

/// Content of the first commit.
#[derive(Debug, Clone, Default)]
pub struct Init {
    /// A README with the repository's name and description.
    pub readme: bool,
    /// Key of a licence template.
    pub licence: Option<String>,
    /// Key of a `.gitignore` template.
    pub gitignore: Option<String>,
}

/// A template that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownChoice {
    #[error("unknown licence {0:?}")]
    Licence(String),
    #[error("unknown .gitignore template {0:?}")]
    Gitignore(String),
}

impl InputError for UnknownChoice {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Licence(_) => Some("license_template"),
            Self::Gitignore(_) => Some("gitignore_template"),
        }
    }
}

/// A first commit whose templates all exist.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    readme: bool,
    licence: Option<&'static Choice>,
    gitignore: Option<&'static Choice>,
}

impl Plan {
    /// Looks the templates up; `None` if no file is wanted.
    pub(super) fn of(init: Option<Init>) -> Result<Option<Self>, UnknownChoice> {
        let Some(Init { readme, licence, gitignore }) = init else { return Ok(None) };
        // A form sends an empty key for "none".
        let find = |choices, key: Option<String>, unknown: fn(String) -> UnknownChoice| {
            let named = key.filter(|key| !key.is_empty());
            named.map(|key| chosen(choices, &key).ok_or_else(|| unknown(key.chars().take(40).collect()))).transpose()
        };
        let licence = find(licences(), licence, UnknownChoice::Licence)?;
        let gitignore = find(gitignores(), gitignore, UnknownChoice::Gitignore)?;
        Ok((readme || licence.is_some() || gitignore.is_some()).then_some(Self { readme, licence, gitignore }))
    }

    fn files(&self, repo: &Repo, holder: &str, now: Timestamp) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        if self.readme {
            let about = if repo.description.is_empty() { String::new() } else { format!("\n{}\n", repo.description) };
            files.push(("README.md", format!("# {}\n{about}", repo.name)));
        }
        if let Some(licence) = self.licence {
            let text = now.to_string();
            let year = text.split('-').next().unwrap_or_default();
            files.push(("LICENSE", licence.text.replace("[year]", year).replace("[holder]", holder)));
        }
        if let Some(gitignore) = self.gitignore {
            files.push((".gitignore", gitignore.text.to_owned()));
        }
        files
    }
}

/// Writes the commit and pushes it to the default branch.
pub(super) async fn push(forge: &Forge, caller: &Caller, repo: &Repo, plan: &Plan) -> Result<(), Fault> {
    let now = forge.clock().now();
    let owner = users::by_id(&mut *forge.store().read().await?, repo.owner_id).await?;
    let owner = owner.ok_or_else(|| Fault::Internal("the owner of a new repository is gone".into()))?;
    let handle = owner.handle();
    let login = handle.as_ref().map_or("", Handle::as_str);
    let name = owner.display_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(login);
    let files = plan.files(repo, name, now);
    let author = Signature {
        name: name.into(),
        email: no_reply(forge, login).into(),
        time: now.micros().div_euclid(1_000_000),
        offset: 0,
    };

    let key = push::incoming_key(forge);
    let incoming = Incoming::create(forge.git(), forge.layout(), repo.id, &key).await?;
    let objects = incoming.objects();
    let write = move || {
        let files: Vec<(&[u8], &[u8])> = files.iter().map(|(path, text)| (path.as_bytes(), text.as_bytes())).collect();
        initial_commit(&objects, &files, &author, b"Initial commit\n")
    };
    let commit = match blocking("writing a first commit", write).await? {
        Ok(commit) => commit,
        Err(WriteError::Git(error)) => return Err(error.into()),
        Err(error) => return Err(Fault::Internal(error.to_string())),
    };
    let update = RefUpdate { name: repo.default_branch.clone(), old: Oid::ZERO, new: commit };
    push::own(forge, caller, repo.clone(), key, incoming, update).await
}

/// An address that names the author without revealing their real address: commits may be public.
fn no_reply(forge: &Forge, login: &str) -> String {
    let url = &forge.settings().public_url;
    let authority = url.split("://").nth(1).unwrap_or(url);
    let host = authority.split(['/', ':']).next().filter(|host| !host.is_empty() && !host.starts_with('['));
    format!("{login}@users.noreply.{}", host.unwrap_or("localhost"))
}
