//! Every statement is one that both engines understand.

use crate::support::{Raw, World};
use abide_store::all_statements;
use abide_testkit::Engine;
use rstest::rstest;
use sqlx::{Either, Executor as _, SqlSafeStr as _, Statement as _, TypeInfo as _};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_statement_can_be_prepared(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let mut raw = world.raw().await;
    let mut refused = Vec::new();
    for (module, sql) in all_statements() {
        let text = sql.text(world.store.engine());
        let prepared = match &mut raw {
            Raw::Sqlite(conn) => conn.prepare(text.into_sql_str()).await.map(drop),
            Raw::Postgres(conn) => conn.prepare(text.into_sql_str()).await.map(drop),
        };
        if let Err(error) = prepared {
            refused.push(format!("{module}::{}: {error}", sql.name));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_takes_every_parameter_in_a_type_that_the_store_sends() {
    let world = World::new(Engine::Postgres).await;
    let Raw::Postgres(mut conn) = world.raw().await else { panic!("another engine") };
    for (module, sql) in all_statements() {
        let statement = conn.prepare(sql.text(world.store.engine()).into_sql_str()).await.unwrap();
        let Some(Either::Left(types)) = statement.parameters() else { panic!("{}: no types", sql.name) };
        for (index, wanted) in types.iter().enumerate() {
            let sent = ["INT8", "TEXT", "BYTEA", "BOOL"].contains(&wanted.name());
            assert!(sent, "{module}::{} wants ${} as {}", sql.name, index + 1, wanted.name());
        }
    }
}

#[test]
fn no_module_is_missing_from_the_list() {
    let source = |path: &Path| fs::read_to_string(path).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = root.join("sql.rs");
    let declared: BTreeSet<String> = sources(&root)
        .into_iter()
        .filter(|path| *path != list && source(path).contains("statements! {"))
        .map(|path| module_of(path.strip_prefix(&root).unwrap()))
        .collect();
    let text = source(&list);
    let named = text.lines().filter_map(|line| line.split_once("crate::")?.1.split_once("::ALL"));
    let listed: BTreeSet<String> = named.map(|(module, _)| module.to_owned()).collect();

    assert!(declared.len() > 50, "the sources were not found: {declared:?}");
    assert_eq!(listed, declared);
    let names: BTreeSet<&str> = all_statements().map(|(name, _)| name).collect();
    assert_eq!(names.len(), listed.len(), "two modules have one name, or one has no statement");
}

/// A process keeps prepared statements, and another one may add a column meanwhile: PostgreSQL then refuses a `*`, and
/// on SQLite the driver reads past the columns that it knows.
#[test]
fn every_statement_names_its_columns() {
    for (module, sql) in all_statements() {
        let text = sql.text(abide_store::Engine::Postgres);
        let all = ["SELECT *", ".*", "RETURNING *", ", *"].iter().any(|all| text.contains(all));
        assert!(!all, "{module}::{}: {text}", sql.name);
    }
}

/// Source files below a directory.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The path of the module in this file, without the crate.
fn module_of(file: &Path) -> String {
    let file = file.with_extension("");
    let parts = file.iter().map(|part| part.to_str().unwrap()).filter(|part| *part != "mod");
    parts.collect::<Vec<_>>().join("::")
}
