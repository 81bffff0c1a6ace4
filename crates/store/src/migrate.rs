//! Migrations: embedded, forward-only, one transaction each, checked at every start.
//!
//! To add one: a file of the same name in `migrations/sqlite` and `migrations/postgres`, and a line here.

use crate::conn::Link;
use crate::value::{Row, params};
use crate::{Conn, Engine, Sql, StoreError};
use abide_core::Timestamp;
use sha2::{Digest as _, Sha256};
use sqlx::PgPool;

/// One migration.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Ascending, not necessarily without gaps.
    pub version: i64,
    /// File name without its extension.
    pub name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        }
    };
}

/// Every migration, in order.
pub const ALL: &[Migration] = &[
    migration!(1, "0001_groundwork"),
    migration!(2, "0002_people"),
    migration!(3, "0003_discovery"),
    migration!(4, "0004_lifecycle"),
    migration!(5, "0005_attention"),
    migration!(6, "0006_issues"),
    migration!(7, "0007_consumers"),
    migration!(8, "0008_notifications"),
    migration!(9, "0009_webhooks"),
    migration!(10, "0010_feeds"),
    migration!(11, "0011_relay"),
    migration!(12, "0012_grasp"),
    migration!(13, "0013_keys"),
    migration!(14, "0014_involvement"),
    migration!(15, "0015_proposed"),
    migration!(16, "0016_confirmed"),
    migration!(17, "0017_attached"),
    migration!(18, "0018_deleted_text"),
    migration!(19, "0019_bearers"),
    migration!(20, "0020_quotas"),
    migration!(21, "0021_strangers"),
    migration!(22, "0022_nostr_news"),
    migration!(23, "0023_statuses"),
    migration!(24, "0024_refs_and_repos"),
    migration!(25, "0025_attached_steps"),
    migration!(26, "0026_delivery_type"),
    migration!(27, "0027_tag_cost"),
    migration!(28, "0028_sync"),
    migration!(29, "0029_relays"),
];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)";
const APPLIED: Sql = same("APPLIED", "SELECT version, name, checksum FROM schema_migrations ORDER BY version");
const INSERT: Sql =
    same("INSERT", "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)");

const fn same(name: &'static str, text: &'static str) -> Sql {
    Sql::new(module_path!(), name, text, text)
}

impl Migration {
    fn text(&self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }

    fn checksum(&self, engine: Engine) -> String {
        Sha256::digest(self.text(engine)).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Hash of all migrations; it identifies the schema of this version.
pub fn fingerprint() -> String {
    let all = ALL.iter().flat_map(|step| [step.checksum(Engine::Sqlite), step.checksum(Engine::Postgres)]);
    let digest = Sha256::digest(all.collect::<String>());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Migrates a SQLite file. Another process that starts at the same time waits for the write lock.
pub(crate) async fn sqlite(conn: &mut Conn, now: Timestamp) -> Result<(), StoreError> {
    in_transaction(conn, "BEGIN IMMEDIATE", now).await
}

/// Migrates a PostgreSQL database. Other nodes that start at the same time wait for the table lock.
pub(crate) async fn postgres(pool: &PgPool, now: Timestamp) -> Result<(), StoreError> {
    let mut conn = Conn::new(Link::Postgres(pool.acquire().await?));
    // IF NOT EXISTS is not atomic: of two nodes that create the table at once, one may get a unique violation, 42P07 or
    // 42710. The table exists then, so the second attempt succeeds.
    if conn.raw(TABLE).await.is_err() {
        conn.raw(TABLE).await?;
    }
    in_transaction(&mut conn, "BEGIN; LOCK TABLE schema_migrations IN EXCLUSIVE MODE", now).await?;
    // A dropped connection returns to the pool only after a while; the next caller would open a second one.
    if let Link::Postgres(conn) = &mut conn.link {
        conn.return_to_pool().await;
    }
    Ok(())
}

async fn in_transaction(conn: &mut Conn, begin: &'static str, now: Timestamp) -> Result<(), StoreError> {
    conn.raw(begin).await?;
    match bring_up_to_date(conn, now).await {
        Ok(()) => conn.raw("COMMIT").await,
        Err(error) => {
            let _ = conn.raw("ROLLBACK").await;
            Err(error)
        }
    }
}

async fn bring_up_to_date(conn: &mut Conn, now: Timestamp) -> Result<(), StoreError> {
    conn.raw(TABLE).await?;
    let applied = conn.all(&APPLIED, &[]).await?;
    let engine = conn.engine();
    for (index, row) in applied.iter().enumerate() {
        check_applied(row, ALL.get(index), engine)?;
    }
    for migration in ALL.iter().skip(applied.len()) {
        conn.raw(migration.text(engine)).await?;
        let values = params![migration.version, migration.name, migration.checksum(engine), now];
        conn.execute(&INSERT, values).await?;
        tracing::info!(version = migration.version, name = migration.name, "migrated the database");
    }
    Ok(())
}

fn check_applied(row: &Row, known: Option<&Migration>, engine: Engine) -> Result<(), StoreError> {
    let (version, name) = (row.int("version")?, row.text("name")?);
    let Some(known) = known else {
        return Err(StoreError::Schema(format!(
            "the database was written by a newer version of Abide (migration {version}, {name}); start that version"
        )));
    };
    if version != known.version || row.text("checksum")? != known.checksum(engine) {
        return Err(StoreError::Schema(format!(
            "migration {version} ({name}) in the database is not the one this version of Abide has ({}); \
             the schema was changed by something else, restore a backup or start the version that wrote it",
            known.name
        )));
    }
    Ok(())
}
