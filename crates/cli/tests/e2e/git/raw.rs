//! Pushes as no git client would send them.

use super::scene::{Road, Scene};
use abide_testkit::GitClient;
use abide_testkit::http::Request;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// An object id that stands for "none".
pub const NONE: &str = "0000000000000000000000000000000000000000";

/// One line of the protocol.
pub fn packet(text: &str) -> Vec<u8> {
    format!("{:04x}{text}", text.len() + 4).into_bytes()
}

/// A push that creates refs, with the pack that is said to have their objects.
pub fn push_of(refs: &[(&str, &str)], pack: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (number, (name, oid)) in refs.iter().enumerate() {
        let capabilities = if number == 0 { "\0report-status" } else { "" };
        body.extend(packet(&format!("{NONE} {oid} {name}{capabilities}\n")));
    }
    body.extend(b"0000");
    body.extend(pack);
    body
}

/// A pack with exactly these objects.
#[track_caller]
pub fn pack(git: &GitClient, dir: &Path, objects: &[&str]) -> Vec<u8> {
    let base = git.fresh_dir().join("some");
    let base = base.to_str().expect("temporary paths are UTF-8");
    let listed = objects.join("\n") + "\n";
    let name = git.feed(dir, &["pack-objects", "--quiet", base], move |input| input.write_all(listed.as_bytes()));
    fs::read(format!("{base}-{}.pack", name.trim())).expect("git has written it")
}

/// Sends a push to Alice's repository by her road, and returns the report.
#[track_caller]
pub fn send(scene: &Scene, push: &[u8]) -> String {
    match scene.road {
        Road::Http => {
            let response = request(scene).body(push).send(scene.server.http_addr());
            assert_eq!(response.status, 200, "{}", response.text());
            response.text()
        }
        Road::Ssh => over_ssh(scene, push),
    }
}

/// The request of a push, without its body.
pub fn request(scene: &Scene) -> Request {
    Request::new("POST", "/alice/demo.git/git-receive-pack")
        .token(Some(&scene.alice.token))
        .header("Content-Type", "application/x-git-receive-pack-request")
}

fn over_ssh(scene: &Scene, push: &[u8]) -> String {
    let git = scene.git().command(&scene.git().fresh_dir(), &[]);
    let (_, ssh) = git.get_envs().find(|(name, _)| *name == "GIT_SSH_COMMAND").expect("she came by SSH");
    let script = format!(
        "{} -p {} git@{} \"git-receive-pack '/alice/demo.git'\"",
        ssh.and_then(|ssh| ssh.to_str()).expect("temporary paths are UTF-8"),
        scene.server.ssh_addr().port(),
        scene.server.ssh_addr().ip(),
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    // What is sent here fits the pipes, so nobody waits for anybody.
    child.stdin.take().expect("it was asked for").write_all(push).expect("ssh listens");
    let output = child.wait_with_output().expect("our own child can be waited for");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_advertisement, report) = answer.split_once("0000").expect("refs come first");
    // The advertisement has ids with zeroes in them; the report is what begins with the verdict on the pack.
    report[report.find("unpack ").unwrap_or(0)..].to_owned()
}
