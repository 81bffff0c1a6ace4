//! Creation, default branch and removal of repositories.

use crate::support::{Server, Work, name, plain_git};
use abide_core::RepoId;
use abide_core::patience::Patience;
use abide_git::{Client, Git, GitError, GitLimits, Head, Layout, Snapshot, bare};
use std::path::Path;

#[tokio::test]
async fn a_new_repository_is_one_for_git() {
    let server = Server::new().await;
    server.fsck();
    assert_eq!(server.run(&["rev-parse", "--is-bare-repository"]), "true");
    assert_eq!(server.run(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let left = server.layout.repo_dirs().unwrap();
    assert_eq!((left.repos.len(), left.strays.len()), (1, 0));
}

#[tokio::test]
async fn creating_twice_keeps_what_is_there() {
    let server = Server::new().await;
    let work = Work::new();
    let tip = work.commit("one");
    work.push_to(&server);
    bare::init_bare(&server.layout, server.id, &name("refs/heads/other")).await.unwrap();
    let snapshot = Snapshot::read(&server.repo).unwrap();
    assert_eq!(snapshot.head_oid(), Some(tip));
}

#[tokio::test]
async fn many_creators_of_one_repository_make_one() {
    let server = Server::new().await;
    let (id, main) = (RepoId::new(9), name("refs/heads/main"));
    let all = (0..8).map(|_| {
        let (layout, main) = (server.layout.clone(), main.clone());
        tokio::spawn(async move { bare::init_bare(&layout, id, &main).await })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap().unwrap();
    }
    let left = server.layout.repo_dirs().unwrap();
    assert_eq!((left.repos.len(), left.strays.len()), (2, 0), "{left:?}");
}

#[tokio::test]
async fn head_moves_to_a_branch_that_need_not_exist() {
    let server = Server::new().await;
    bare::set_head(&server.layout, server.id, &name("refs/heads/trunk")).await.unwrap();
    assert_eq!(server.run(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    let snapshot = Snapshot::read(&server.repo).unwrap();
    assert_eq!(snapshot.head, Head::Symbolic("refs/heads/trunk".into()));
    assert_eq!(snapshot.head_oid(), None);
}

#[tokio::test]
async fn a_lock_that_a_crash_left_and_other_writers_keep_nobody_from_moving_head() {
    let server = Server::new().await;
    std::fs::write(server.repo.join("HEAD.lock"), "").unwrap();
    let all = ["a", "b", "c", "d"].map(|branch| {
        let layout = server.layout.clone();
        let (id, branch) = (server.id, name(&format!("refs/heads/{branch}")));
        tokio::spawn(async move { bare::set_head(&layout, id, &branch).await })
    });
    for one in all {
        one.await.unwrap().unwrap();
    }
    let head = server.run(&["symbolic-ref", "HEAD"]);
    assert!(["a", "b", "c", "d"].iter().any(|branch| head == format!("refs/heads/{branch}")), "{head}");
    assert_eq!(std::fs::read_dir(server.layout.incoming_root()).unwrap().count(), 0, "no draft is left");
}

#[tokio::test]
async fn a_removed_repository_is_gone_and_may_be_removed_again() {
    let server = Server::new().await;
    bare::remove_repo(&server.layout, server.id).await.unwrap();
    bare::remove_repo(&server.layout, server.id).await.unwrap();
    assert!(!server.repo.exists());
    assert!(server.layout.repo_dirs().unwrap().strays.is_empty());
}

#[tokio::test]
async fn what_is_no_git_is_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    let missing = Git::detect(Path::new("/nonexistent/git"), &layout, GitLimits::default()).await;
    assert!(matches!(missing, Err(GitError::Start { .. })), "{missing:?}");
    let other = Git::detect(Path::new("/bin/echo"), &layout, GitLimits::default()).await;
    assert!(matches!(other, Err(GitError::Version { .. })), "{other:?}");
}

#[tokio::test]
async fn neither_the_users_configuration_nor_the_repositorys_hooks_are_obeyed() {
    let server = Server::new().await;
    let hook = server.repo.join("hooks/reference-transaction");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ntouch \"$GIT_DIR/hook-ran\"\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let work = Work::new();
    let tip = work.commit("one");
    let updates = [crate::support::update("refs/heads/main", abide_core::Oid::ZERO, tip)];
    server.push(&work.pack(&["HEAD"]), &updates).await.unwrap();
    assert!(!server.repo.join("hook-ran").exists());
    // The same hook does run for a plain git, so the test would notice it.
    plain_git(&server.repo).args(["update-ref", "refs/heads/x", "refs/heads/main"]).status().unwrap();
    assert!(server.repo.join("hook-ran").exists());
}

/// A wrapper that records its environment and then behaves like git.
fn stand_in(dir: &Path, script: &str) -> std::path::PathBuf {
    let path = dir.join("git-stand-in");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\nexec git \"$@\"\n")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn git_sees_our_environment_only() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let binary = stand_in(dir.path(), &format!("env >> '{}'", seen.display()));
    let git = Git::detect(&binary, &Layout::new(dir.path()), GitLimits::default()).await.unwrap();
    git.upload_capabilities().await.unwrap();
    let seen = std::fs::read_to_string(seen).unwrap();
    // Variables that the wrapper's shell adds.
    let ours = |name: &str| {
        name.starts_with("GIT_") || ["PATH", "HOME", "LC_ALL", "PWD", "_", "OLDPWD", "SHLVL"].contains(&name)
    };
    for line in seen.lines() {
        let name = line.split('=').next().unwrap();
        assert!(ours(name), "{line}");
    }
    assert!(seen.contains(&format!("HOME={}\n", dir.path().join("git/home").display())));
    assert!(seen.contains("GIT_CONFIG_NOSYSTEM=1\n"));
}

#[tokio::test]
async fn a_git_that_ignores_the_request_to_end_is_killed() {
    use abide_git::upload::{UploadPack, read_request, spawn};
    let server = Server::new().await;
    let pid_file = server.layout.data().join("pid");
    let script = format!(
        "case \"$*\" in *stateless-rpc*) trap '' TERM; echo $$ > '{}'; while :; do sleep 0.1; done;; esac",
        pid_file.display()
    );
    let binary = stand_in(server.layout.data(), &script);
    let git = Git::detect(&binary, &server.layout, GitLimits::default()).await.unwrap();
    let patience = Patience::new(std::time::Duration::from_secs(60), 1024);
    let (repo, client) = (server.repo.clone(), Client::SERVER);
    let fetch = UploadPack { repo, protocol: Default::default(), patience, client };
    let request = read_request(&git, Client::SERVER, tokio::io::empty(), 1).await.unwrap();
    let stream = spawn(&git, &fetch, request).await.unwrap();
    let pause = || tokio::time::sleep(std::time::Duration::from_millis(20));
    let pid = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => pause().await,
        }
    };
    drop(stream);
    let start = std::time::Instant::now();
    while Path::new("/proc").join(&pid).exists() {
        assert!(start.elapsed().as_secs() < 20, "{pid} is still there");
        pause().await;
    }
}
