//! Pushes as no git client would send them.

use super::setup::{Road, SOON, Setup};
use abide_testkit::GitClient;
use abide_testkit::http::Request;
use std::fs;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

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

/// Sends a push to Alice's repository by her road, and returns the lines of the report.
#[track_caller]
pub fn send(setup: &Setup, push: &[u8]) -> String {
    match setup.road {
        Road::Http => {
            let response = request(setup).body(push).send(setup.server.http_addr());
            assert_eq!(response.status, 200, "{}", response.text());
            read_lines(&mut &response.body[..])
        }
        Road::Ssh => {
            let (mut ssh, stdin, report) = over_ssh(setup, push);
            drop(stdin);
            let report = report.recv_timeout(SOON).expect("there is an answer");
            ssh.wait().expect("our own child can be waited for");
            report
        }
    }
}

/// Sends a push over SSH and keeps the connection open both ways until the report is there, as libgit2 does.
#[track_caller]
pub fn send_and_stay(setup: &Setup, push: &[u8]) -> String {
    let (mut ssh, stdin, report) = over_ssh(setup, push);
    let report = report.recv_timeout(SOON).expect("nobody has to hang up to get an answer");
    drop(stdin);
    ssh.wait().expect("our own child can be waited for");
    report
}

/// The request of a push, without its body.
pub fn request(setup: &Setup) -> Request {
    Request::new("POST", "/alice/demo.git/git-receive-pack")
        .token(Some(&setup.alice.token))
        .header("Content-Type", "application/x-git-receive-pack-request")
}

/// Sends a push over SSH. The report comes when it is there; the client goes on saying nothing.
pub fn over_ssh(setup: &Setup, push: &[u8]) -> (Child, ChildStdin, Receiver<String>) {
    let mut child = ssh(setup, "git-receive-pack");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let (sender, report) = mpsc::channel();
    thread::spawn(move || {
        let _advertisement = read_lines(&mut stdout);
        let _ = sender.send(read_lines(&mut stdout));
    });
    stdin.write_all(push).expect("ssh listens");
    (child, stdin, report)
}

/// A service of git for Alice's repository, over SSH.
pub fn ssh(setup: &Setup, service: &str) -> Child {
    let git = setup.git().command(&setup.git().fresh_dir(), &[]);
    let (_, ssh) = git.get_envs().find(|(name, _)| *name == "GIT_SSH_COMMAND").expect("she came by SSH");
    let script = format!(
        "exec {} -p {} git@{} \"{service} '/alice/demo.git'\"",
        ssh.and_then(|ssh| ssh.to_str()).expect("temporary paths are UTF-8"),
        setup.server.ssh_addr().port(),
        setup.server.ssh_addr().ip(),
    );
    Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell")
}

/// Lines of the protocol up to the flush or the end.
pub fn read_lines(input: &mut impl Read) -> String {
    let mut text = String::new();
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() && length != *b"0000" {
        let length = std::str::from_utf8(&length).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let mut line = vec![0; length.expect("a length in hex") - 4];
        input.read_exact(&mut line).expect("a line as long as it says");
        text.push_str(&String::from_utf8_lossy(&line));
    }
    text
}
