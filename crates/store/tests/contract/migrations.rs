//! The schema: the same on both engines, made once, and refused when it is not ours.

use crate::support::{self, Raw, World, note, options, raw};
use abide_store::{Store, StoreError, migrate};
use abide_testkit::{Engine, TestClock, TestDatabase};
use futures_util::future::join_all;
use rstest::rstest;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[test]
fn both_folders_hold_the_migrations_that_are_listed() {
    let files = |engine: &str| -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let listed: BTreeSet<String> = migrate::ALL.iter().map(|migration| format!("{}.sql", migration.name)).collect();

    assert_eq!(files("sqlite"), listed);
    assert_eq!(files("postgres"), listed);
    assert!(migrate::ALL.iter().map(|migration| migration.version).is_sorted_by(|a, b| a < b), "each has its number");
    for migration in migrate::ALL {
        assert!(migration.name.starts_with(&format!("{:04}_", migration.version)), "{}", migration.name);
    }
}

/// Statements that list columns, indexes, and keys with references, for SQLite and PostgreSQL.
const COLUMNS: [&str; 2] = [
    "SELECT m.name || '.' || c.name || ' ' ||
            CASE upper(c.type) WHEN 'INTEGER' THEN 'BIGINT' WHEN 'BLOB' THEN 'BYTEA' ELSE upper(c.type) END ||
            CASE WHEN c.\"notnull\" = 1 OR (c.pk > 0 AND upper(c.type) = 'INTEGER') THEN ' NOT NULL' ELSE '' END ||
            CASE WHEN c.dflt_value IS NULL THEN '' ELSE ' ' || lower(c.dflt_value) END
         FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'",
    "SELECT c.table_name || '.' || c.column_name || ' ' || upper(c.data_type) ||
            CASE c.is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END ||
            coalesce(' ' || lower(replace(c.column_default, '::text', '')), '')
         FROM information_schema.columns c WHERE c.table_schema = 'public'",
];
const INDEXES: [&str; 2] = [
    "SELECT i.name || ' on ' || m.name || CASE i.\"unique\" WHEN 1 THEN ' unique' ELSE '' END ||
            CASE i.partial WHEN 1 THEN ' partial' ELSE '' END || ' (' ||
            (SELECT group_concat(c.name, ',') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c) || ')'
         FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table' AND i.origin = 'c'",
    "SELECT i.relname || ' on ' || t.relname || CASE WHEN x.indisunique THEN ' unique' ELSE '' END ||
            CASE WHEN x.indpred IS NOT NULL THEN ' partial' ELSE '' END || ' (' ||
            (SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM unnest(x.indkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number) || ')'
         FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
         WHERE t.relnamespace = 'public'::regnamespace
           AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u'))",
];
const REFERENCES: [&str; 2] = [
    "SELECT m.name || ' unique (' ||
            (SELECT group_concat(c.name, ',') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c) || ')'
         FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table' AND i.origin IN ('u', 'pk')
         UNION ALL
         SELECT m.name || ' unique (' || c.name || ')' FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND c.pk > 0 AND c.type = 'INTEGER'
         UNION ALL
         SELECT m.name || '.' || f.\"from\" || ' -> ' || f.\"table\" || ' ' || f.on_delete
         FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
    "SELECT t.relname || ' unique (' ||
            (SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number) || ')'
         FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
         WHERE c.contype IN ('p', 'u') AND t.relnamespace = 'public'::regnamespace
         UNION ALL
         SELECT t.relname || '.' || a.attname || ' -> ' || c.confrelid::regclass || ' ' ||
            CASE c.confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE '?' END
         FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
         JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.conkey[1]
         WHERE c.contype = 'f'",
];

/// Statements that describe the schema of one engine.
pub fn schema(engine: Engine) -> [&'static str; 3] {
    [COLUMNS, INDEXES, REFERENCES].map(|[sqlite, postgres]| if engine == Engine::Sqlite { sqlite } else { postgres })
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_have_the_same_columns() {
    let (sqlite, postgres) = both(COLUMNS).await;
    assert!(sqlite.contains("repos.owner_id BIGINT NOT NULL"), "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_have_the_same_indexes() {
    let (sqlite, postgres) = both(INDEXES).await;
    assert!(sqlite.contains("repos_live_name on repos unique partial (owner_id,name)"), "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_have_the_same_keys_and_references() {
    let (sqlite, postgres) = both(REFERENCES).await;
    assert!(sqlite.contains("domain_events.repo_id -> repos SET NULL"), "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

/// Schema of a migrated database of each engine.
async fn both([sqlite, postgres]: [&str; 2]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (one, other) = (World::new(Engine::Sqlite).await, World::new(Engine::Postgres).await);
    let sqlite = one.raw().await.texts(sqlite).await.into_iter().collect();
    let postgres = other.raw().await.texts(postgres).await.into_iter().collect();
    (sqlite, postgres)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn opening_again_changes_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const APPLIED: &str = "SELECT version || name || checksum || applied_at FROM schema_migrations ORDER BY version";
    let world = World::new(engine).await;
    note(&world.store, "kept").await.unwrap();
    let mut raw = world.raw().await;
    let before = raw.texts(APPLIED).await;
    world.clock.advance(support::PATIENCE);

    let again = world.another_store().await;

    assert_eq!(support::notes(&again).await, ["kept"]);
    assert_eq!(raw.texts(APPLIED).await, before);
    assert_eq!(before.len(), migrate::ALL.len());
}

/// Every command opens the store, and a connection costs the server a process.
#[tokio::test(flavor = "multi_thread")]
async fn opening_takes_one_connection() {
    let world = World::new(Engine::Postgres).await;
    let connected = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'abide' AND datname = current_database()";
    assert_eq!(world.raw().await.number(connected).await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_can_open_a_fresh_database_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // The second process may find any intermediate state, so this is tried often.
    for _ in 0..if engine == Engine::Sqlite { 30 } else { 5 } {
        let database = TestDatabase::new(engine);
        let opened = join_all((0..8).map(|_| {
            let options = options(&database);
            tokio::spawn(async move { Store::open(&options, Arc::new(TestClock::new())).await })
        }));
        let stores: Vec<Store> = opened.await.into_iter().map(|store| store.unwrap().unwrap()).collect();

        for (index, store) in stores.iter().enumerate() {
            note(store, &format!("by {index}")).await.unwrap();
        }
        assert_eq!(support::notes(&stores[0]).await.len(), 8);
        assert_eq!(
            raw(&database).await.number("SELECT count(*) FROM schema_migrations").await,
            migrate::ALL.len() as i64
        );
    }
}

#[rstest]
#[case::changed(
    "UPDATE schema_migrations SET checksum = 'other'",
    "migration 1 (0001_groundwork) in the database is not the one this version of Abide has",
    "restore a backup"
)]
#[case::newer(
    "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (9999, '9999_future', 'x', 0)",
    "written by a newer version of Abide (migration 9999, 9999_future)",
    "start that version"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_not_ours_is_refused_with_what_to_do(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] change: &str,
    #[case] what: &str,
    #[case] advice: &str,
) {
    let world = World::new(engine).await;
    world.raw().await.execute(change).await;

    let refused = Store::open(world.options(), Arc::new(TestClock::new())).await.err().unwrap();

    assert!(matches!(refused, StoreError::Schema(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(what) && text.contains(advice), "{text}");
}

/// Another process of a newer version adds columns while this one runs with its prepared statements.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_column_added_by_a_newer_process_does_not_disturb_a_running_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::with(engine, |options| options.connections = 1).await;
    let owner = support::user(&world.store, "alice").await;
    let repo = support::repo(&world.store, owner, "tool").await;
    let read = async || {
        let mut conn = world.store.read().await.unwrap();
        abide_store::repos::by_id(&mut conn, repo, None).await
    };
    // Often enough that the statement is prepared for good.
    for _ in 0..6 {
        read().await.unwrap();
    }

    let mut raw = world.raw().await;
    for table in ["repos", "users", "jobs", "tokens"] {
        raw.execute(&format!("ALTER TABLE {table} ADD COLUMN of_a_newer_version TEXT DEFAULT 'surprise'")).await;
    }

    let found = read().await.unwrap().unwrap();
    assert_eq!(found.owner_name, Some("alice".parse().unwrap()));
    let locked = unit(&world.store, repo).await.unwrap();
    assert_eq!(locked.slug(), "alice/tool");
}

async fn unit(store: &Store, repo: abide_core::RepoId) -> Result<abide_store::repos::Repo, StoreError> {
    let locked = support::unit!(store, repo, |tx, &repo| abide_store::repos::lock(tx, repo, None).await).await?;
    locked.ok_or(StoreError::Missing)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_writes_ahead_and_flushes_every_commit() {
    let world = World::new(Engine::Sqlite).await;
    let Raw::Sqlite(_) = world.raw().await else { panic!("another engine") };
    let journal = support::run(&world.store, support::sql("PRAGMA journal_mode"), vec![]).await.unwrap();
    let flush = support::run(&world.store, support::sql("PRAGMA synchronous"), vec![]).await.unwrap();
    let keys = support::run(&world.store, support::sql("PRAGMA foreign_keys"), vec![]).await.unwrap();
    assert_eq!(journal[0].text("journal_mode").unwrap(), "wal");
    assert_eq!(flush[0].int("synchronous").unwrap(), 2);
    assert_eq!(keys[0].int("foreign_keys").unwrap(), 1);
}

/// Applies the files of some migrations, as versions before this one did.
pub async fn apply(raw: &mut Raw, engine: Engine, wanted: impl Fn(&migrate::Migration) -> bool) {
    let name = if engine == Engine::Sqlite { "sqlite" } else { "postgres" };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(name);
    for migration in migrate::ALL.iter().filter(|migration| wanted(migration)) {
        let text = fs::read_to_string(folder.join(format!("{}.sql", migration.name))).unwrap();
        raw.execute(&text).await;
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn older_rows_lose_their_texts_and_keep_their_redirects(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let strips = migrate::ALL.iter().find(|migration| migration.name.ends_with("_deleted_text")).unwrap().version;
    let database = TestDatabase::new(engine);
    if engine == Engine::Sqlite {
        fs::File::create(database.data_dir().join("abide.db")).unwrap();
    }
    let mut raw = raw(&database).await;
    apply(&mut raw, engine, |migration| migration.version < strips).await;
    raw.execute(
        "INSERT INTO users (name, created_at, updated_at) VALUES ('alice', 0, 0);
        INSERT INTO repo_ids (reserved_at) VALUES (0);
        INSERT INTO repos (id, owner_id, name, visibility, governance, default_branch, created_at, updated_at)
            VALUES (1, 1, 'two', 'public', 'account', 'refs/heads/main', 0, 0);
        INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, created_at, last_used_at) VALUES (1, 'one', 1, 7, 8);
        INSERT INTO jobs (kind, payload, priority, state, run_at, max_attempts, created_at)
            VALUES ('mail:send', '{\"sealed\":\"marmalade\"}', 1, 'done', 0, 3, 0);",
    )
    .await;
    for (kind, source, repo, payload) in [
        ("issue_created", "issue", "1", r#"{"number":1,"title":"marmalade","excerpt":"marmalade"}"#),
        ("issue_edited", "issue", "1", r#"{"number":1,"changed":["title"],"before":"marmalade"}"#),
        ("issue_labeled", "issue", "1", r#"{"number":1,"label":{"name":"marmalade"}}"#),
        ("label_edited", "repo", "1", r#"{"repo_id":1,"before":"marmalade","label":"marmalade"}"#),
        ("repo_hard_deleted", "repo", "NULL", r#"{"repo_id":2,"snapshot":{"id":2,"description":"marmalade"}}"#),
        ("push", "repo", "NULL", r#"{"repo_id":2,"refs":[{"commits":[{"message":"marmalade"}]}]}"#),
        ("push", "repo", "1", r#"{"repo_id":1,"refs":[{"name":"refs/heads/main"}]}"#),
    ] {
        raw.execute(&format!(
            "INSERT INTO domain_events (kind, repo_id, source_kind, source_id, public, payload, created_at)
            VALUES ('{kind}', {repo}, '{source}', 1, TRUE, '{payload}', 0)"
        ))
        .await;
    }
    apply(&mut raw, engine, |migration| migration.version >= strips).await;

    let left = raw.texts("SELECT payload FROM domain_events ORDER BY id").await;
    assert_eq!(left.len(), 7);
    assert!(left.iter().all(|payload| !payload.contains("marmalade")), "{left:?}");
    assert!(
        left[0].contains("number") && left[4].contains("snapshot") && left[6].contains("refs/heads/main"),
        "{left:?}"
    );
    assert_eq!(raw.texts("SELECT payload FROM jobs").await, ["{}"]);
    let redirect = "SELECT old_owner_id || ' ' || old_name || ' ' || repo_id || ' ' || left_at || ' ' || last_used_at
        FROM repo_redirects";
    assert_eq!(raw.texts(redirect).await, ["1 one 1 7 8"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn inboxes_survive_that_nostr_threads_join_them(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let joins = migrate::ALL.iter().find(|migration| migration.name.ends_with("_nostr_news")).unwrap().version;
    let database = TestDatabase::new(engine);
    if engine == Engine::Sqlite {
        fs::File::create(database.data_dir().join("abide.db")).unwrap();
    }
    let mut raw = raw(&database).await;
    apply(&mut raw, engine, |migration| migration.version < joins).await;
    let thread = |id: &str| {
        format!(
            "INSERT INTO notification_threads (repo_id, subject_kind, subject_id, created_at, updated_at)
            VALUES (1, {id}, 0, 0);"
        )
    };
    raw.execute(&format!(
        "INSERT INTO users (name, created_at, updated_at) VALUES ('alice', 0, 0);
        INSERT INTO repo_ids (reserved_at) VALUES (0);
        INSERT INTO repos (id, owner_id, name, visibility, governance, default_branch, created_at, updated_at)
            VALUES (1, 1, 'two', 'public', 'account', 'refs/heads/main', 0, 0);
        {}{}{}
        DELETE FROM notification_threads WHERE subject_id = 9;
        INSERT INTO notifications (user_id, thread_id, title, reason, state, private, last_seq, updated_at, mail_events)
            SELECT 1, id, 'kept', 'mention', 'unread', FALSE, 5, 6, 7 FROM notification_threads WHERE subject_kind = 'issue';",
        thread("'repo', 1"),
        thread("'issue', 3"),
        thread("'issue', 9"),
    ))
    .await;
    apply(&mut raw, engine, |migration| migration.version >= joins).await;

    let kept = "SELECT t.subject_kind || ' ' || t.subject_id || ' ' || n.title || ' ' || n.mail_events
        FROM notifications n JOIN notification_threads t ON t.id = n.thread_id";
    assert_eq!(raw.texts(kept).await, ["issue 3 kept 7"]);
    raw.execute(&thread("'nostr_thread', 4")).await;
    let newest = "SELECT CAST(max(id) AS TEXT) FROM notification_threads";
    assert_eq!(raw.texts(newest).await, ["4"], "the number of a deleted thread is not given again");
    raw.execute("DELETE FROM notification_threads").await;
    assert_eq!(raw.texts("SELECT title FROM notifications").await, Vec::<String>::new(), "the tables hang together");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn statuses_that_are_here_already_know_their_threads(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let knows = migrate::ALL.iter().find(|migration| migration.name.ends_with("_statuses")).unwrap().version;
    let database = TestDatabase::new(engine);
    if engine == Engine::Sqlite {
        fs::File::create(database.data_dir().join("abide.db")).unwrap();
    }
    let mut raw = raw(&database).await;
    apply(&mut raw, engine, |migration| migration.version < knows).await;
    let (a, b) = ("aa".repeat(32), "bb".repeat(32));
    let tags = [
        format!(r#"[["e","{a}"],["e","{b}"]]"#),
        format!(r#"[["p","{a}"],["e","{a}","","reply"],["e","{b}","wss://x","root"]]"#),
        r#"[["e","x"]]"#.to_owned(),
        "[]".to_owned(),
    ];
    for (n, tags) in tags.iter().enumerate() {
        let id = if engine == Engine::Sqlite { format!("X'0{n}'") } else { format!("'\\x0{n}'") };
        let json = format!(r#"{{"tags":{tags},"content":"\u0000"}}"#);
        raw.execute(&format!(
            "INSERT INTO nostr_events (event_id, pubkey, kind, created_at, json, stored_at)
            VALUES ({id}, {id}, 1632, {n}, '{json}', 0)"
        ))
        .await;
    }
    apply(&mut raw, engine, |migration| migration.version >= knows).await;
    let hex = if engine == Engine::Sqlite { "lower(hex(status_of))" } else { "encode(status_of, 'hex')" };
    let known =
        format!("SELECT CASE WHEN status_of IS NULL THEN 'none' ELSE {hex} END FROM nostr_events ORDER BY created_at");
    let none = "none".to_owned();
    assert_eq!(raw.texts(&known).await, [a, b, none.clone(), none]);
}
