//! Authentication: who gets in, and with which key.

use crate::world::{World, stderr};
use abide_core::repo::Visibility;
use abide_forge::accounts::suspend;
use std::path::PathBuf;
use std::process::Command;

fn keygen(args: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-N", "", "-f"]).arg(&path).args(args).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    (dir, path)
}

#[test]
fn an_unknown_key_is_refused() {
    let world = World::new();
    let (_dir, stranger) = keygen(&["-t", "ed25519"]);
    let output = world.ssh_with(&stranger, &["-T"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("Permission denied (publickey)"), "{}", stderr(&output));
}

#[test]
fn a_client_may_offer_several_keys() {
    let world = World::new();
    let alice = world.person("alice");
    let strangers: Vec<_> = (0..5).map(|_| keygen(&["-t", "ed25519"])).collect();
    let mut ssh = world.ssh_with(&strangers[0].1, &["-T"], &[]);
    for (_, key) in &strangers[1..] {
        ssh.arg("-i").arg(key);
    }
    let output = ssh.arg("-i").arg(alice.private_key()).output().unwrap();
    assert!(stderr(&output).contains("Hi alice!"), "{}", stderr(&output));
}

#[test]
fn any_login_name_will_do_because_the_key_says_who_it_is() {
    let world = World::new();
    let alice = world.person("alice");
    let output = world.ssh(&alice, &["-T", "-l", "root"], &[]).output().unwrap();
    assert!(stderr(&output).contains("Hi alice!"), "{}", stderr(&output));
}

#[test]
fn ecdsa_and_rsa_keys_get_in_but_not_with_sha1() {
    let world = World::new();
    let alice = world.person("alice");
    for kind in [&["-t", "ecdsa"][..], &["-t", "ecdsa", "-b", "521"], &["-t", "rsa", "-b", "2048"]] {
        let (_dir, key) = keygen(kind);
        world.add_key(alice.user.id, &key.with_extension("pub"));
        let output = world.ssh_with(&key, &["-T"], &[]).output().unwrap();
        assert!(stderr(&output).contains("Hi alice!"), "{kind:?}: {}", stderr(&output));
        if kind[1] == "rsa" {
            for (algorithm, accepted) in [("rsa-sha2-256", true), ("rsa-sha2-512", true), ("ssh-rsa", false)] {
                let only = format!("PubkeyAcceptedAlgorithms={algorithm}");
                let output = world.ssh_with(&key, &["-T", "-o", &only], &[]).output().unwrap();
                assert_eq!(stderr(&output).contains("Hi alice!"), accepted, "{algorithm}: {}", stderr(&output));
            }
        }
    }
}

#[test]
fn passwords_are_not_even_asked_for() {
    let world = World::new();
    let alice = world.person("alice");
    let options = ["-T", "-v", "-o", "PreferredAuthentications=password,keyboard-interactive,none"];
    let output = world.ssh(&alice, &options, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("Authentications that can continue: publickey\r\n"), "{}", stderr(&output));
}

#[test]
fn old_algorithms_are_not_spoken() {
    let world = World::new();
    let alice = world.person("alice");
    for option in [
        "Ciphers=aes128-cbc",
        "Ciphers=aes128-ctr",
        "KexAlgorithms=diffie-hellman-group14-sha1",
        "KexAlgorithms=diffie-hellman-group14-sha256",
        "HostKeyAlgorithms=ssh-rsa",
    ] {
        let output = world.ssh(&alice, &["-T", "-o", option], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(255), "{option}");
        assert!(stderr(&output).contains("no matching"), "{option}: {}", stderr(&output));
    }
    for option in
        ["Ciphers=chacha20-poly1305@openssh.com", "Ciphers=aes256-gcm@openssh.com", "Ciphers=aes128-gcm@openssh.com"]
    {
        let output = world.ssh(&alice, &["-T", "-o", option], &[]).output().unwrap();
        assert!(stderr(&output).contains("Hi alice!"), "{option}: {}", stderr(&output));
    }
}

#[test]
fn a_connection_does_not_outlive_the_rights_of_its_key() {
    let world = World::new();
    let (alice, bob) = (world.person("alice"), world.person("bob"));
    world.repo_with_commit(&alice, "demo", Visibility::Public);
    for (person, lose) in [
        (&alice, &(|| world.remove_key(&alice)) as &dyn Fn()),
        (&bob, &|| world.run(suspend::set_suspended(&world.forge, bob.user.id, true)).unwrap()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let socket = format!("ControlPath={}", dir.path().join("s").display());
        let mux = ["-T", "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", &socket];
        let fetch = || world.ssh(person, &mux, &["git-upload-pack '/alice/demo.git'"]).output().unwrap();
        assert!(String::from_utf8_lossy(&fetch().stdout).contains("refs/heads/main"));
        lose();
        let output = fetch();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert_eq!(stderr(&output), "Abide: this key is no longer accepted\n");
        let _ = world.ssh(person, &["-O", "exit", "-o", &socket], &[]).output();
        assert_eq!(world.ssh(person, &["-T"], &[]).output().unwrap().status.code(), Some(255));
    }
}
