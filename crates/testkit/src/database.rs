//! A fresh database per test, on either engine.

use std::collections::hash_map::RandomState;
use std::env;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::postgres;

/// Variable in which `./test` passes the URL of its temporary PostgreSQL.
const POSTGRES_VARIABLE: &str = "ABIDE_TEST_POSTGRES";

/// Database engine of a test; meant for `#[values(Engine::Sqlite, Engine::Postgres)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// SQLite, in a file of the data directory.
    Sqlite,
    /// PostgreSQL, in the temporary cluster that `./test` starts.
    Postgres,
}

/// An empty data directory and, on PostgreSQL, an empty database. Dropping it removes both.
#[derive(Debug)]
pub struct TestDatabase {
    engine: Engine,
    postgres: Option<PostgresDatabase>,
    data_dir: TempDir,
}

impl TestDatabase {
    /// Creates a fresh database. Blocks briefly; works inside and outside an async runtime.
    ///
    /// # Panics
    /// On PostgreSQL, if the test got no cluster URL or the cluster does not answer.
    pub fn new(engine: Engine) -> Self {
        let postgres = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(PostgresDatabase::create()),
        };
        let closed = fs::Permissions::from_mode(0o700);
        let data_dir = tempfile::Builder::new().prefix("abide-data-").permissions(closed).tempdir();
        let data_dir = data_dir.expect("a temporary data directory can be made");
        Self { engine, postgres, data_dir }
    }

    /// Copies the database kept under this stamp, which is faster than creating one; `None` if none was kept yet.
    ///
    /// # Panics
    /// As [`TestDatabase::new`].
    pub fn copied(engine: Engine, stamp: &str) -> Option<Self> {
        let postgres = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(PostgresDatabase::create_like(&template(stamp))?),
        };
        let copy = Self { postgres, ..Self::new(Engine::Sqlite) };
        if engine == Engine::Sqlite && fs::copy(kept_file(stamp), copy.sqlite_file()).is_err() {
            return None;
        }
        Some(Self { engine, ..copy })
    }

    /// Keeps this database for copies; it must have no open connections. Every test is its own process, so the database
    /// is kept where the next one finds it: next to the test binary, or in the cluster. If several tests keep one at
    /// the same time, any of them will do.
    ///
    /// # Panics
    /// If it cannot be kept.
    pub fn keep(&self, stamp: &str) {
        match &self.postgres {
            Some(database) => database.keep(&template(stamp)),
            None => {
                let log = self.data_dir().join("abide.db-wal");
                assert!(!log.exists(), "the database is still open");
                let kept = kept_file(stamp);
                let made = kept.with_extension(random_hex());
                // The first test to keep one may not be a server, which makes all its files 0600.
                let closed = fs::Permissions::from_mode(0o600);
                let copied = fs::copy(self.sqlite_file(), &made).and_then(|_| fs::set_permissions(&made, closed));
                let copied = copied.and_then(|()| fs::rename(&made, &kept));
                copied.unwrap_or_else(|error| panic!("{} cannot be kept: {error}", kept.display()));
            }
        }
    }

    fn sqlite_file(&self) -> PathBuf {
        self.data_dir().join("abide.db")
    }

    /// Engine of this database.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// URL of the PostgreSQL database; `None` means SQLite in [`TestDatabase::data_dir`].
    pub fn url(&self) -> Option<&str> {
        self.postgres.as_ref().map(|database| database.url.as_str())
    }

    /// The data directory of this test, empty at first.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }
}

fn template(stamp: &str) -> String {
    format!("abide_template_{stamp}")
}

fn kept_file(stamp: &str) -> PathBuf {
    let binary = env::current_exe().expect("a test knows its binary");
    binary.with_file_name(format!("{}.db", template(stamp)))
}

/// std seeds every RandomState from the operating system, so parallel test processes get different values.
fn random_hex() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// A database in the shared cluster, with a unique name.
#[derive(Debug)]
struct PostgresDatabase {
    name: String,
    url: String,
    cluster_url: String,
}

impl PostgresDatabase {
    fn create() -> Self {
        // Nobody connects to template0, so parallel creations do not block each other.
        Self::create_like("template0").expect("every cluster has template0")
    }

    /// A copy of another database, if it exists.
    fn create_like(template: &str) -> Option<Self> {
        let cluster_url = env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "this test needs PostgreSQL: run it through `./test NAME`, which starts a temporary one, \
                 or set {POSTGRES_VARIABLE} to the URL of a cluster where databases may be created"
            )
        });
        let name = format!("abide_test_{}", random_hex());
        match copy(&cluster_url, template, &name) {
            Ok(()) => Some(Self { url: with_database(&cluster_url, &name), name, cluster_url }),
            Err(error) if error.contains(template) && error.contains("does not exist") => None,
            Err(error) => panic!("PostgreSQL at {cluster_url} made no database: {error}"),
        }
    }

    fn keep(&self, template: &str) {
        let kept = copy(&self.cluster_url, &self.name, template);
        if let Err(error) = kept {
            let lost_a_race = error.contains("already exists") || error.contains("pg_database_datname_index");
            assert!(lost_a_race, "PostgreSQL at {} kept no database: {error}", self.cluster_url);
        }
    }
}

/// Copies a database with FILE_COPY, which is much faster than writing everything to the log. PostgreSQL before 15
/// knows no other strategy.
fn copy(cluster_url: &str, from: &str, to: &str) -> Result<(), String> {
    let plain = format!("CREATE DATABASE {to} TEMPLATE {from}");
    match run(cluster_url, &format!("{plain} STRATEGY FILE_COPY")) {
        Err(error) if error.contains("\"strategy\" not recognized") => run(cluster_url, &plain),
        copied => copied,
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // DROP DATABASE waits a tenth of a second for open connections.
        postgres::hang_up(&self.url);
        // FORCE, because a failed test may leave connections open.
        let dropped = run(&self.cluster_url, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        if let Err(error) = dropped {
            eprintln!("database {} stays behind: {error}", self.name);
        }
    }
}

/// Runs one statement.
fn run(url: &str, statement: &str) -> Result<(), String> {
    postgres::ask(url, statement).map(drop).map_err(|error| error.to_string())
}

/// The URL with another database name; keeps the parameters.
fn with_database(url: &str, name: &str) -> String {
    let (address, parameters) = match url.split_once('?') {
        Some((address, parameters)) => (address, format!("?{parameters}")),
        None => (url, String::new()),
    };
    let after_scheme = address.find("://").map_or(0, |at| at + "://".len());
    let server = match address[after_scheme..].find('/') {
        Some(slash) => &address[..after_scheme + slash],
        None => address,
    };
    format!("{server}/{name}{parameters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        for (url, expected) in [
            ("postgres://me@127.0.0.1:5433/postgres", "postgres://me@127.0.0.1:5433/fresh"),
            ("postgres://127.0.0.1", "postgres://127.0.0.1/fresh"),
            ("postgres://h/postgres?host=/run/pg", "postgres://h/fresh?host=/run/pg"),
        ] {
            assert_eq!(with_database(url, "fresh"), expected);
        }
    }

    #[test]
    fn sqlite_needs_no_url_and_leaves_nothing_behind() {
        let database = TestDatabase::new(Engine::Sqlite);
        let dir = database.data_dir().to_owned();
        assert!(dir.is_dir());
        assert_eq!(database.url(), None);
        drop(database);
        assert!(!dir.exists());
    }

    #[test]
    fn a_copy_holds_what_was_kept_and_is_its_own() {
        let stamp = random_hex();
        assert!(TestDatabase::copied(Engine::Sqlite, &stamp).is_none());
        let first = TestDatabase::new(Engine::Sqlite);
        fs::write(first.sqlite_file(), "kept").expect("the directory is writable");
        first.keep(&stamp);
        first.keep(&stamp);
        let copy = TestDatabase::copied(Engine::Sqlite, &stamp).expect("one was kept");
        fs::write(copy.sqlite_file(), "changed").expect("a copy is writable");
        let other = TestDatabase::copied(Engine::Sqlite, &stamp).expect("one was kept");
        assert_eq!(fs::read_to_string(other.sqlite_file()).expect("it is there"), "kept");
        fs::remove_file(kept_file(&stamp)).expect("it was kept");
    }

    #[test]
    fn a_copy_in_postgres_holds_what_was_kept_and_is_its_own() {
        let stamp = random_hex();
        assert!(TestDatabase::copied(Engine::Postgres, &stamp).is_none());
        let first = TestDatabase::new(Engine::Postgres);
        let url = |database: &TestDatabase| database.url().expect("PostgreSQL has a URL").to_owned();
        run(&url(&first), "CREATE TABLE kept (id INT)").expect("the database is writable");
        postgres::hang_up(&url(&first));
        first.keep(&stamp);
        first.keep(&stamp);
        let copy = TestDatabase::copied(Engine::Postgres, &stamp).expect("one was kept");
        run(&url(&copy), "DROP TABLE kept").expect("a copy has what was kept");
        let other = TestDatabase::copied(Engine::Postgres, &stamp).expect("one was kept");
        run(&url(&other), "SELECT * FROM kept").expect("each copy is its own");
        let cluster = env::var(POSTGRES_VARIABLE).expect("it was used above");
        run(&cluster, &format!("DROP DATABASE {}", template(&stamp))).expect("it was kept");
    }

    #[test]
    fn every_postgres_database_is_fresh_and_goes_away() {
        let first = TestDatabase::new(Engine::Postgres);
        let second = TestDatabase::new(Engine::Postgres);
        let first_url = first.url().expect("PostgreSQL has a URL").to_owned();
        let second_url = second.url().expect("PostgreSQL has a URL");

        run(&first_url, "CREATE TABLE only_in_first (id INT)").expect("the database is writable");
        assert!(run(second_url, "SELECT * FROM only_in_first").is_err());

        drop(first);
        let gone = run(&first_url, "SELECT 1").expect_err("the database was dropped");
        assert!(gone.contains("does not exist"), "{gone}");
    }
}
