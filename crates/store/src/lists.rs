//! Lists that are ordered by time, newest first: which part of one is wanted, and what stands in it.

use crate::repos::{Page, Repo, Viewer};
use crate::value::params;
use crate::{Conn, Row, Sql, StoreError};
use abide_core::{Handle, RepoId, Timestamp, UserId};

/// A place in a list: when an entry came, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When it came.
    pub at: Timestamp,
    /// The number of the account or repository.
    pub id: i64,
}

impl Place {
    /// Before the newest entry.
    pub const TOP: Self = Self { at: Timestamp::from_micros(i64::MAX), id: i64::MAX };
}

/// Part of a list: what is older than a place, by steps that cost the same however deep; or a numbered page.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Only what is older.
    pub behind: Place,
    /// How much of that.
    pub page: Page,
}

impl Part {
    /// So many behind a place.
    pub fn behind(place: Place, limit: i64) -> Self {
        Self { behind: place, page: Page { limit, offset: 0 } }
    }
}

impl From<Page> for Part {
    fn from(page: Page) -> Self {
        Self { behind: Place::TOP, page }
    }
}

/// The columns of [`Person`], of `users u`; the list adds `since`.
macro_rules! person_columns {
    () => {
        "u.id, COALESCE(u.name, u.npub) AS name, u.site_admin"
    };
}
pub(crate) use person_columns;

/// Someone in a list, and since when.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who.
    pub id: UserId,
    /// What they are called.
    pub name: Option<Handle>,
    /// Whether they administer the site.
    pub site_admin: bool,
    /// Since when they are in the list.
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

    /// Those who keep a repository in a list, by a statement that lists them.
    pub(crate) async fn list(conn: &mut Conn, sql: &Sql, repo: RepoId, part: Part) -> Result<Vec<Self>, StoreError> {
        let Part { behind, page } = part;
        let rows = conn.all(sql, params![repo, behind.at, behind.id, page.limit, page.offset]).await?;
        rows.iter().map(Self::from_row).collect()
    }

    /// Where they stand in it.
    pub fn place(&self) -> Place {
        Place { at: self.since, id: self.id.get() }
    }
}

/// A repository in someone's list, and since when.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Which.
    pub repo: Repo,
    /// Since when it is in the list.
    pub since: Timestamp,
}

impl Kept {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { repo: Repo::from_row(row)?, since: row.time("since")? })
    }

    /// What of a user's list the viewer may read, by a statement that lists it, and how much that is in all, by one that
    /// counts.
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

    /// Where it stands in it.
    pub fn place(&self) -> Place {
        Place { at: self.since, id: self.repo.id.get() }
    }
}
