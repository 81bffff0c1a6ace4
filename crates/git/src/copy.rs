//! Copying objects from one repository to another, for forks.

use crate::durable::sync_all;
use crate::error::blocking;
use crate::incoming::quoted;
use crate::{Git, GitError};
use abide_core::Oid;
use std::fmt::Write;
use std::path::Path;

/// Packs everything that these tips of `from_repo` reach into an object directory of another repository or of an
/// incoming area, durable when this returns. The copy stands alone: no alternates, no links.
///
/// The caller names the tips, so that what the reader may not see is not copied.
pub async fn copy_objects(git: &Git, from_repo: &Path, to_objects: &Path, tips: &[Oid]) -> Result<(), GitError> {
    let _place = git.heavy_place().await?;
    let mut input = String::with_capacity(tips.len() * 41);
    for tip in tips {
        writeln!(input, "{tip}").expect("writing to a string does not fail");
    }
    let packs = to_objects.join("pack");
    std::fs::create_dir_all(&packs).map_err(GitError::io("create", &packs))?;
    git.call("pack-objects", from_repo)
        // Temporary files are then made beside the result, and only a rename is left to do.
        .env("GIT_OBJECT_DIRECTORY", to_objects)
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&from_repo.join("objects")))
        .args(["--revs", "--delta-base-offset", "--non-empty", "-q"])
        .args([packs.join("pack")])
        .run(input.as_bytes(), git.limits().maintenance)
        .await?;
    blocking(move || sync_all(std::slice::from_ref(&packs)).map_err(GitError::io("flush", &packs))).await
}
