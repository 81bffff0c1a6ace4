//! Repositories: the identity, not the bytes.

pub mod collaborators;
pub mod forks;
pub mod purges;
pub mod pushes;
pub mod redirects;
mod repo;
pub mod search;
pub mod topics;
pub mod transfers;

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::lifecycle::State;
use abide_core::repo::{Governance, Visibility};
use abide_core::{RefName, RepoId, RepoName, Timestamp, UserId, UserName};

pub(crate) use repo::address;
pub use repo::{RefState, Repo};

/// Columns of [`Repo`], without the role.
macro_rules! columns {
    () => {
        "r.id, r.owner_id, u.name AS owner_name, r.name, r.description, r.visibility, r.governance, r.default_branch,
            r.archived_at, r.deleted_at, r.fork_of_repo_id, r.refs_generation, r.star_count, r.watcher_count,
            r.size_bytes, r.pushed_at, r.created_at, r.updated_at, u.npub AS owner_npub,
            CASE WHEN r.governance = 'nostr' THEN
                (SELECT d.identifier FROM nostr_repos d WHERE d.repo_id = r.id) END AS identifier"
    };
}
pub(crate) use columns;

/// Identifier of a repository whose owner has no username, from `repos r` and its owner `users o`.
macro_rules! identifier {
    () => {
        "CASE WHEN o.name IS NULL THEN
            (SELECT d.identifier FROM nostr_repos d WHERE d.repo_id = r.id) END AS identifier"
    };
}
pub(crate) use identifier;

/// The visibility predicate of every list and count, for `repos r` with the viewer's row of `repo_collaborators c`.
/// Takes the parameters of the viewer and of whether they read everything.
macro_rules! visible {
    ($viewer:literal, $everything:literal) => {
        concat!(
            "r.deleted_at IS NULL AND (r.visibility = 'public' OR r.owner_id = ",
            $viewer,
            " OR c.user_id IS NOT NULL OR ",
            $everything,
            ")"
        )
    };
}
pub(crate) use visible;

/// The user with the current or old name $1.
macro_rules! owner {
    () => {
        "COALESCE((SELECT id FROM users WHERE name = $1), (SELECT user_id FROM user_redirects WHERE old_name = $1))"
    };
}
pub(crate) use owner;

/// The repository that the name $2 below owner `$owner` leads viewer $3 to ($4: they read everything) while no
/// repository has the name: of those that left it, the last live and readable one.
macro_rules! redirected {
    ($owner:expr) => {
        concat!(
            "SELECT d.repo_id FROM repo_redirects d
            JOIN repos r ON r.id = d.repo_id
            LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $3
            WHERE d.old_owner_id = ",
            $owner,
            " AND d.old_name = $2 AND ",
            crate::repos::visible!("$3", "$4"),
            " ORDER BY d.left_at DESC, d.id DESC LIMIT 1"
        )
    };
}
pub(crate) use redirected;

statements! {
    NAME_TAKEN = "SELECT r.id FROM repos r WHERE r.owner_id = $1 AND r.name = $2 AND r.deleted_at IS NULL";
    RESERVE_ID = "INSERT INTO repo_ids (reserved_at) VALUES ($1) RETURNING id";
    INSERT = "INSERT INTO repos (id, owner_id, name, description, visibility, governance, default_branch,
            fork_of_repo_id, refs_generation, pushed_at, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)";

    /// The live repository with that slug, with one user's role in it. Owner and repository are found by their current
    /// names, else by old ones. One statement for hit and miss alike. $4: the viewer reads everything.
    BY_SLUG = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $3
        WHERE r.deleted_at IS NULL AND r.id = COALESCE(
            (SELECT l.id FROM repos l WHERE l.owner_id = ", owner!(), " AND l.name = $2 AND l.deleted_at IS NULL),
            (", redirected!(owner!()), "))");
    /// Repositories deleted under this name, latest first.
    DELETED_BY_SLUG = concat!("SELECT ", columns!(), ", CAST(NULL AS TEXT) AS role
        FROM users u
        JOIN repos r ON r.owner_id = u.id AND r.name = $2 AND r.deleted_at IS NOT NULL
        WHERE u.id = ", owner!(), " ORDER BY r.deleted_at DESC, r.id DESC LIMIT $3");
    DELETED_OF_OWNER = concat!("SELECT ", columns!(), ", CAST(NULL AS TEXT) AS role
        FROM repos r JOIN users u ON u.id = r.owner_id
        WHERE r.owner_id = $1 AND r.deleted_at IS NOT NULL
        ORDER BY r.deleted_at DESC, r.id DESC LIMIT $2 OFFSET $3");
    COUNT_DELETED_OF_OWNER = "SELECT count(*) AS n FROM repos WHERE owner_id = $1 AND deleted_at IS NOT NULL";
    /// Deleted until $1, after ($2, $3): the paging of the sweep.
    DELETED_UNTIL = "SELECT id, deleted_at FROM repos
        WHERE deleted_at IS NOT NULL AND deleted_at <= $1 AND (deleted_at > $2 OR (deleted_at = $2 AND id > $3))
        ORDER BY deleted_at, id LIMIT $4";
    BY_ID = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE r.id = $1");
    LOCK = "SELECT id FROM repos WHERE id = $1", postgres " FOR UPDATE";

    /// Live repositories of an owner that a viewer may read: $2 is the viewer, $3 whether they read everything.
    LIST_OF_OWNER = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE r.owner_id = $1 AND ", visible!("$2", "$3"), "
        ORDER BY r.name LIMIT $4 OFFSET $5");
    COUNT_OF_OWNER = concat!("SELECT count(*) AS n
        FROM repos r
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE r.owner_id = $1 AND ", visible!("$2", "$3"));

    /// Repositories that a user owns or collaborates on.
    LIST_OF_MEMBER = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
        WHERE r.deleted_at IS NULL AND r.id IN (SELECT id FROM repos WHERE owner_id = $1
            UNION SELECT repo_id FROM repo_collaborators WHERE user_id = $1)
        ORDER BY u.name, r.name LIMIT $2 OFFSET $3");
    COUNT_OF_MEMBER = "SELECT count(*) AS n
        FROM repos r
        WHERE r.deleted_at IS NULL AND r.id IN (SELECT id FROM repos WHERE owner_id = $1
            UNION SELECT repo_id FROM repo_collaborators WHERE user_id = $1)";

    /// All repositories including deleted ones, for the operator.
    PAGE = concat!("SELECT ", columns!(), ", CAST(NULL AS TEXT) AS role
        FROM repos r JOIN users u ON u.id = r.owner_id
        WHERE r.id > $1 ORDER BY r.id LIMIT $2");

    /// Repositories that were never pushed to: only these can lack a directory.
    EMPTY_PAGE = concat!("SELECT ", columns!(), ", CAST(NULL AS TEXT) AS role
        FROM repos r JOIN users u ON u.id = r.owner_id
        WHERE r.refs_generation = 0 AND r.id > $1 ORDER BY r.id LIMIT $2");

    UPDATE_ABOUT = "UPDATE repos SET description = $2, default_branch = $3, updated_at = $4 WHERE id = $1";
    UPDATE_MARKS = "UPDATE repos SET visibility = $2, archived_at = $3, deleted_at = $4, updated_at = $5 WHERE id = $1";

    RENAME = "UPDATE repos SET name = $2, updated_at = $3 WHERE id = $1";
    HAND_OVER = "UPDATE repos SET owner_id = $2, updated_at = $3 WHERE id = $1";
    REMOVE = "DELETE FROM repos WHERE id = $1";

    /// Odd while refs may be moving: becomes the next odd number, whatever it was.
    GENERATION_BEGIN = "UPDATE repos SET refs_generation = refs_generation + 1 + (refs_generation % 2)
        WHERE id = $1 RETURNING refs_generation";
    /// Even again, if it is still the odd number that this writer set.
    GENERATION_END = "UPDATE repos SET refs_generation = refs_generation + 1
        WHERE id = $1 AND refs_generation = $2";
    /// Makes an odd generation even. Only under the repository's lease, when none of its pushes is running.
    GENERATION_SETTLE = "UPDATE repos SET refs_generation = refs_generation + 1
        WHERE id = $1 AND refs_generation % 2 = 1";
    REF_STATE = "SELECT refs_generation, default_branch FROM repos WHERE id = $1";
    TOUCH_PUSHED = "UPDATE repos SET pushed_at = $2, updated_at = $2 WHERE id = $1";
    SET_SIZE = "UPDATE repos SET size_bytes = $2 WHERE id = $1";
}

/// Values of a new repository.
#[derive(Debug, Clone)]
pub struct NewRepo {
    pub owner_id: UserId,
    pub name: RepoName,
    pub description: String,
    pub visibility: Visibility,
    /// Source of authority for pushes.
    pub governance: Governance,
    pub default_branch: RefName,
}

/// Takes an id that no repository has or had.
pub async fn reserve_id(tx: &mut Tx) -> Result<RepoId, StoreError> {
    let now = tx.now();
    tx.only(&RESERVE_ID, params![now]).await?.int("id").map(RepoId::new)
}

/// Whether the owner has a live repository with this name.
pub async fn name_taken(conn: &mut Conn, owner: UserId, name: &RepoName) -> Result<bool, StoreError> {
    Ok(conn.one(&NAME_TAKEN, params![owner, name.as_str()]).await?.is_some())
}

/// Origin of the content of a repository that is not empty when added.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    pub fork_of: Option<RepoId>,
    /// When these refs last moved.
    pub pushed_at: Option<Timestamp>,
}

/// Adds an empty repository; [`StoreError::Unique`] if the owner has a live one with this name.
pub async fn insert(tx: &mut Tx, new: &NewRepo) -> Result<RepoId, StoreError> {
    let id = reserve_id(tx).await?;
    insert_row(tx, id, new, None).await?;
    Ok(id)
}

/// As [`insert`], with content, under the id reserved for it.
pub async fn insert_filled(tx: &mut Tx, id: RepoId, new: &NewRepo, content: Content) -> Result<(), StoreError> {
    insert_row(tx, id, new, Some(content)).await
}

async fn insert_row(tx: &mut Tx, id: RepoId, new: &NewRepo, content: Option<Content>) -> Result<(), StoreError> {
    let now = tx.now();
    // Content counts as one movement of refs.
    let refs_generation: i64 = if content.is_some() { 2 } else { 0 };
    let values = params![
        id,
        new.owner_id,
        new.name.as_str(),
        new.description.as_str(),
        new.visibility.as_str(),
        new.governance.as_str(),
        new.default_branch.as_str(),
        content.and_then(|content| content.fork_of),
        refs_generation,
        content.and_then(|content| content.pushed_at),
        now
    ];
    tx.execute(&INSERT, values).await.map(drop)
}

/// The live repository `owner/name`, with the viewer's role in it. Old names of the owner and the repository also find
/// it: then [`Repo::slug`] differs from the requested name.
pub async fn by_slug(
    conn: &mut Conn,
    owner: &UserName,
    name: &RepoName,
    viewer: impl Into<Viewer>,
) -> Result<Option<Repo>, StoreError> {
    let Viewer { user, reads_everything } = viewer.into();
    let values = params![owner.as_str(), name.as_str(), user, reads_everything];
    conn.one(&BY_SLUG, values).await?.as_ref().map(Repo::from_row).transpose()
}

/// The repository with this id, deleted or not, with the viewer's role in it.
pub async fn by_id(conn: &mut Conn, id: RepoId, viewer: Option<UserId>) -> Result<Option<Repo>, StoreError> {
    conn.one(&BY_ID, params![id, viewer]).await?.as_ref().map(Repo::from_row).transpose()
}

/// As [`by_id`], locking the row until the unit ends, so that a decision based on it still holds when written.
///
/// Lock and read are two statements. One statement for both would join the row that it waited for, which may have
/// another owner by now, with the previous owner, and find nothing.
pub async fn lock(tx: &mut Tx, id: RepoId, viewer: Option<UserId>) -> Result<Option<Repo>, StoreError> {
    match tx.one(&LOCK, params![id]).await? {
        Some(_) => by_id(tx, id, viewer).await,
        None => Ok(None),
    }
}

/// Viewer of a list.
#[derive(Debug, Clone, Copy)]
pub struct Viewer {
    pub user: Option<UserId>,
    /// Whether they read everything that is not deleted.
    pub reads_everything: bool,
}

impl From<Option<UserId>> for Viewer {
    fn from(user: Option<UserId>) -> Self {
        Self { user, reads_everything: false }
    }
}

/// Part of a list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    pub limit: i64,
    pub offset: i64,
}

/// An owner's repositories that the viewer may read, by name, and their total number.
pub async fn of_owner(
    conn: &mut Conn,
    owner: UserId,
    viewer: Viewer,
    page: Page,
) -> Result<(Vec<Repo>, i64), StoreError> {
    let Viewer { user, reads_everything } = viewer;
    let rows = conn.all(&LIST_OF_OWNER, params![owner, user, reads_everything, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_OF_OWNER, params![owner, user, reads_everything]).await?.int("n")?;
    Ok((rows.iter().map(Repo::from_row).collect::<Result<_, _>>()?, total))
}

/// Ids as one parameter, for statements about many repositories.
pub(crate) fn id_list(ids: &[RepoId]) -> String {
    ids.iter().map(RepoId::to_string).collect::<Vec<_>>().join(",")
}

/// Repositories that a user owns or collaborates on, by slug, and their total number.
pub async fn of_member(conn: &mut Conn, user: UserId, page: Page) -> Result<(Vec<Repo>, i64), StoreError> {
    let rows = conn.all(&LIST_OF_MEMBER, params![user, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_OF_MEMBER, params![user]).await?.int("n")?;
    Ok((rows.iter().map(Repo::from_row).collect::<Result<_, _>>()?, total))
}

/// A page of all repositories by id, including deleted ones.
pub async fn page(conn: &mut Conn, after: RepoId, limit: i64) -> Result<Vec<Repo>, StoreError> {
    conn.all(&PAGE, params![after, limit]).await?.iter().map(Repo::from_row).collect()
}

/// A page of repositories that were never pushed to, by id, including deleted ones.
pub async fn empty_page(conn: &mut Conn, after: RepoId, limit: i64) -> Result<Vec<Repo>, StoreError> {
    conn.all(&EMPTY_PAGE, params![after, limit]).await?.iter().map(Repo::from_row).collect()
}

/// Replaces description and default branch.
pub async fn set_about(tx: &mut Tx, id: RepoId, description: &str, default_branch: &RefName) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&UPDATE_ABOUT, params![id, description, default_branch.as_str(), now]).await.map(drop)
}

/// Writes the marks that a lifecycle transition decided on.
pub async fn set_marks(tx: &mut Tx, id: RepoId, state: &State) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![id, state.visibility.as_str(), state.archived_at, state.deleted_at, now];
    tx.execute(&UPDATE_MARKS, values).await.map(drop)
}

/// Renames a repository; [`StoreError::Unique`] if the owner has a live one with this name.
pub async fn rename(tx: &mut Tx, id: RepoId, name: &RepoName) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&RENAME, params![id, name.as_str(), now]).await.map(drop)
}

/// Changes the owner of a repository; [`StoreError::Unique`] if they have a live one with its name.
pub async fn hand_over(tx: &mut Tx, id: RepoId, owner: UserId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&HAND_OVER, params![id, owner, now]).await.map(drop)
}

/// Removes a repository's row and its dependent rows. Forks lose their source, events their repository.
pub async fn remove(tx: &mut Tx, id: RepoId) -> Result<(), StoreError> {
    tx.execute(&REMOVE, params![id]).await.map(drop)
}

/// Deleted repositories whose last slug was `owner/name`, latest first.
pub async fn deleted_by_slug(
    conn: &mut Conn,
    owner: &UserName,
    name: &RepoName,
    limit: i64,
) -> Result<Vec<Repo>, StoreError> {
    let values = params![owner.as_str(), name.as_str(), limit];
    conn.all(&DELETED_BY_SLUG, values).await?.iter().map(Repo::from_row).collect()
}

/// A page of an owner's deleted repositories, latest first, and their total number.
pub async fn deleted_of_owner(conn: &mut Conn, owner: UserId, page: Page) -> Result<(Vec<Repo>, i64), StoreError> {
    let rows = conn.all(&DELETED_OF_OWNER, params![owner, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_DELETED_OF_OWNER, params![owner]).await?.int("n")?;
    Ok((rows.iter().map(Repo::from_row).collect::<Result<_, _>>()?, total))
}

/// Position in the order of deletion.
pub type DeletedAt = (Timestamp, RepoId);

/// A page of repositories deleted until an instant, longest deleted first, after a position.
pub async fn deleted_until(
    conn: &mut Conn,
    until: Timestamp,
    behind: DeletedAt,
    limit: i64,
) -> Result<Vec<DeletedAt>, StoreError> {
    let rows = conn.all(&DELETED_UNTIL, params![until, behind.0, behind.1, limit]).await?;
    rows.iter().map(|row| Ok((row.time("deleted_at")?, RepoId::new(row.int("id")?)))).collect()
}

/// Marks refs as moving. Returns the odd generation for [`end_refs`].
pub async fn begin_refs(tx: &mut Tx, id: RepoId) -> Result<i64, StoreError> {
    tx.only(&GENERATION_BEGIN, params![id]).await?.int("refs_generation")
}

/// Marks refs as at rest; `false` if another writer began meanwhile.
pub async fn end_refs(tx: &mut Tx, id: RepoId, generation: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&GENERATION_END, params![id, generation]).await? > 0)
}

/// Makes the generation even after crashes that left it odd. Only under the repository's lease, when none of its pushes
/// runs.
pub async fn settle_refs(tx: &mut Tx, id: RepoId) -> Result<(), StoreError> {
    tx.execute(&GENERATION_SETTLE, params![id]).await.map(drop)
}

/// Version of the refs and the default branch as they are now; `None` if the repository is gone.
pub async fn ref_state(conn: &mut Conn, id: RepoId) -> Result<Option<RefState>, StoreError> {
    conn.one(&REF_STATE, params![id]).await?.as_ref().map(RefState::from_row).transpose()
}

/// Records that refs moved.
pub async fn touch_pushed(tx: &mut Tx, id: RepoId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH_PUSHED, params![id, now]).await.map(drop)
}

/// Records the size on disk.
pub async fn set_size(tx: &mut Tx, id: RepoId, bytes: i64) -> Result<(), StoreError> {
    tx.execute(&SET_SIZE, params![id, bytes]).await.map(drop)
}
