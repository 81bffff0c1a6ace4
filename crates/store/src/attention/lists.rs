//! Lists sorted by time, newest first: parts of a list and its entries.

use crate::repos::{Page, Repo, Viewer};
use crate::value::params;
use crate::{Conn, Row, Sql, StoreError};
use abide_core::{Handle, RepoId, Timestamp, UserId};

/// Position in a list: time and id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    pub at: Timestamp,
    /// Id of the account or repository.
    pub id: i64,
}

impl SortKey {
    /// Before the newest entry.
    pub const TOP: Self = Self { at: Timestamp::from_micros(i64::MAX), id: i64::MAX };
}

/// Part of a list: entries older than a position (keyset paging, equally fast at any depth), or a numbered page.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Only entries older than this position.
    pub behind: SortKey,
    pub page: Page,
}

impl Part {
    /// A number of entries after a position.
    pub fn behind(sort_key: SortKey, limit: i64) -> Self {
        Self { behind: sort_key, page: Page { limit, offset: 0 } }
    }
}

impl From<Page> for Part {
    fn from(page: Page) -> Self {
        Self { behind: SortKey::TOP, page }
    }
}

/// Columns of [`Person`], from `users u`; the list adds `since`.
macro_rules! person_columns {
    () => {
        "u.id, COALESCE(u.name, u.npub) AS name, u.site_admin"
    };
}
pub(crate) use person_columns;

/// A user in a list, and since when.
#[derive(Debug, Clone)]
pub struct Person {
    pub id: UserId,
    pub name: Option<Handle>,
    pub site_admin: bool,
    pub since: Timestamp,
}

impl Person {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: UserId::new(row.int("id")?),
            name: row.opt_text("name")?.map(Handle::from_stored),
            site_admin: row.bool("site_admin")?,
            since: row.time("since")?,
        })
    }

    /// Users in a list of this repository, from a list statement.
    pub(crate) async fn list(conn: &mut Conn, sql: &Sql, repo: RepoId, part: Part) -> Result<Vec<Self>, StoreError> {
        let Part { behind, page } = part;
        let rows = conn.all(sql, params![repo, behind.at, behind.id, page.limit, page.offset]).await?;
        rows.iter().map(Self::from_row).collect()
    }

    /// Position in the list.
    pub fn sort_key(&self) -> SortKey {
        SortKey { at: self.since, id: self.id.get() }
    }
}

/// A repository in a user's list, and since when.
#[derive(Debug, Clone)]
pub struct Kept {
    pub repo: Repo,
    pub since: Timestamp,
}

impl Kept {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { repo: Repo::from_row(row)?, since: row.time("since")? })
    }

    /// The part of a user's list that the viewer may read, and its total number, from a list and a count statement.
    pub(crate) async fn list(
        conn: &mut Conn,
        [list, count]: [&Sql; 2],
        user: UserId,
        viewer: Viewer,
        part: Part,
    ) -> Result<(Vec<Self>, i64), StoreError> {
        let (Viewer { user: by, reads_everything }, Part { behind, page }) = (viewer, part);
        let values = params![user, by, reads_everything, behind.at, behind.id, page.limit, page.offset];
        let rows = conn.all(list, values).await?;
        let total = conn.only(count, params![user, by, reads_everything]).await?.int("n")?;
        Ok((rows.iter().map(Self::from_row).collect::<Result<_, _>>()?, total))
    }

    /// Position in the list.
    pub fn sort_key(&self) -> SortKey {
        SortKey { at: self.since, id: self.repo.id.get() }
    }
}
