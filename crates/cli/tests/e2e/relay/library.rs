//! A library that people write nostr programs with: nostr-tools, as published. What it does is in
//! `tests/octokit/relay.mjs`.

use super::Setup;
use crate::clients::{installed, run};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;
use std::process::Command;

#[rstest]
fn nostr_tools_works_unchanged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let home = installed("ABIDE_TEST_OCTOKIT", "nostr-tools");
    let setup = Setup::new(engine);
    let setting = json!({ "relay": setup.server.url().replace("http", "ws"), "repo": setup.repo });
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/octokit/relay.mjs");
    run(Command::new("node").args(["--experimental-websocket", scenario, &home]), &setting.to_string());
}
