//! The public compliance suite of GRASP, `grasp-audit`, unchanged. `./test audit` installs it; without it there is nobody
//! to ask.

use crate::clients::installed;
use crate::support::{assert_healthy, builder};
use abide_testkit::Engine;
use rstest::rstest;
use std::path::PathBuf;
use std::process::Command;

#[rstest]
#[ignore = "needs grasp-audit: ./test audit"]
fn every_test_of_the_compliance_suite_passes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let audit = PathBuf::from(installed("ABIDE_TEST_AUDIT", "grasp-audit")).join("grasp-audit");
    // Its keys are nobody's accounts.
    let server = builder(engine).env("ABIDE_SIGNUP__MODE", "open").start();
    let relay = server.url().replacen("http", "ws", 1);
    let home = tempfile::tempdir().expect("a temporary directory");
    let ran = Command::new(&audit)
        .args(["audit", "--relay", &relay])
        .env("HOME", home.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", audit.display()));
    let report = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{report}\n{}", server.log());
    // GRASP-06, which is not offered here, has one test for servers without it.
    for results in ["62/62 tests passed", "1 passed, 0 failed, 11 skipped"] {
        assert!(report.contains(results), "{report}");
    }
    assert_healthy(&server);
}
