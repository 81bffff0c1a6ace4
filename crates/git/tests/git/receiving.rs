//! The incoming area of a push.

use crate::support::{Server, Work, update};
use abide_core::{Oid, RefUpdate};
use abide_git::incoming::{Flaw, list_incoming, remove_incoming};
use abide_git::receive::RefusedTip;
use abide_git::{Client, GitLimits, ReceiveError, ReceiveLimits};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

fn creating(tip: Oid) -> [RefUpdate; 1] {
    [update("refs/heads/main", Oid::ZERO, tip)]
}

fn files_below(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[tokio::test]
async fn a_small_push_becomes_loose_objects() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commit("one");
    let outcome = server.push(&work.pack(&["HEAD"]), &creating(tip)).await.unwrap();
    assert_eq!((outcome.objects, outcome.kept_as_pack), (3, false));
    assert_eq!(server.run(&["rev-parse", "refs/heads/main"]), tip.to_string());
    assert!(list_incoming(&server.layout).unwrap().is_empty());
    server.fsck();
}

#[tokio::test]
async fn a_large_push_stays_a_pack() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commits(60);
    let outcome = server.push(&work.pack(&["main"]), &creating(tip)).await.unwrap();
    assert!(outcome.kept_as_pack && outcome.objects > 100);
    assert_eq!(server.run(&["count-objects"]), "0 objects, 0 kilobytes");
    server.fsck();
}

#[tokio::test]
async fn a_few_objects_that_become_much_stay_a_pack() {
    let (server, work) = (Server::new().await, Work::new());
    let long: String = (0..2_000_000).map(|line| format!("line {line}\n")).collect();
    let tip = work.commit(&long);
    let outcome = server.push(&work.pack(&["HEAD"]), &creating(tip)).await.unwrap();
    assert_eq!((outcome.objects, outcome.kept_as_pack), (3, true));
    server.fsck();
}

#[tokio::test]
async fn a_thin_pack_is_completed_from_the_repository() {
    let (server, work) = (Server::new().await, Work::new());
    let long: String = (0..3000).map(|line| format!("line {line}\n")).collect();
    let one = work.commit(&long);
    server.push(&work.pack(&["HEAD"]), &creating(one)).await.unwrap();
    let two = work.commit(&(long + "and one more\n"));
    let pack = work.pack(&["HEAD", &format!("^{one}")]);
    assert!(pack.len() < 1500, "the pack is thin: {}", pack.len());
    for (unpack_limit, key) in [(100, "loose"), (1, "packed")] {
        let limits = ReceiveLimits { unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming(key).await;
        incoming.receive(&pack[..], &limits, None).await.unwrap();
        let connected = server.connected(incoming, &[update("refs/heads/main", one, two)]).await;
        connected.migrate(&server.repo).await.unwrap();
    }
    assert_eq!(server.run(&["cat-file", "-t", &two.to_string()]), "commit");
    server.fsck();
}

#[tokio::test]
async fn the_repository_sees_nothing_before_the_objects_are_migrated() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commit("one");
    let incoming = server.incoming("waiting").await;
    incoming.receive(&work.pack(&["HEAD"])[..], &ReceiveLimits::default(), None).await.unwrap();
    assert_eq!(files_below(&server.repo.join("objects")), 0);
    assert_eq!(list_incoming(&server.layout).unwrap(), ["waiting"]);
    incoming.discard().await.unwrap();
    assert!(list_incoming(&server.layout).unwrap().is_empty());
    assert!(!tip.is_zero());
}

#[tokio::test]
async fn migrating_twice_changes_nothing_more() {
    for commits in [1, 60] {
        let (server, work) = (Server::new().await, Work::new());
        let tip = work.commits(commits);
        let incoming = server.incoming("twice").await;
        incoming.receive(&work.pack(&["main"])[..], &ReceiveLimits::default(), None).await.unwrap();
        let connected = server.connected(incoming, &creating(tip)).await;
        connected.migrate(&server.repo).await.unwrap();
        let once = files_below(&server.repo.join("objects"));
        connected.migrate(&server.repo).await.unwrap();
        assert_eq!(files_below(&server.repo.join("objects")), once);
        // Simulates a crash between linking a pack and its index; the second call completes the first.
        let pack_dir = server.repo.join("objects/pack");
        for entry in std::fs::read_dir(&pack_dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "idx") {
                std::fs::remove_file(path).unwrap();
            }
        }
        connected.migrate(&server.repo).await.unwrap();
        assert_eq!(server.run(&["cat-file", "-t", &tip.to_string()]), "commit");
        server.fsck();
    }
}

#[tokio::test]
async fn a_push_that_leaves_objects_out_is_refused_by_name() {
    let (server, work) = (Server::new().await, Work::new());
    let one = work.commit("one");
    let two = work.commit("two");
    let incoming = server.incoming("broken").await;
    incoming.receive(&work.pack(&[&one.to_string()])[..], &ReceiveLimits::default(), None).await.unwrap();
    // A tag whose target exists, a branch whose tip does not.
    let updates = [update("refs/tags/whole", Oid::ZERO, one), update("refs/heads/hole", Oid::ZERO, two)];
    let (connected, refused) = incoming.connect(&updates).await.unwrap();
    assert_eq!(names(&refused), ["refs/heads/hole"]);
    assert!(connected.covers(&server.repo, one) && !connected.covers(&server.repo, two));
}

#[tokio::test]
async fn a_hole_deep_in_the_history_is_found() {
    let (server, work) = (Server::new().await, Work::new());
    let one = work.commit("one");
    work.commit("two");
    let three = work.commit("three");
    let incoming = server.incoming("hole").await;
    // Without the middle commit. Strict unpacking would refuse this, so copy the objects by hand.
    for oid in [one, three] {
        let name = oid.to_string();
        let target = incoming.objects().join(&name[..2]);
        std::fs::create_dir_all(&target).unwrap();
        let from = work.path().join(".git/objects").join(&name[..2]).join(&name[2..]);
        std::fs::copy(from, target.join(&name[2..])).unwrap();
    }
    let updates = [update("refs/heads/hole", Oid::ZERO, three), update("refs/heads/main", Oid::ZERO, three)];
    let (connected, refused) = incoming.connect(&updates).await.unwrap();
    assert_eq!(refused.len(), 2);
    assert!(!connected.covers(&server.repo, three));
}

#[tokio::test]
async fn a_branch_is_a_commit() {
    let (server, work) = (Server::new().await, Work::new());
    work.commit("one");
    work.run(&["tag", "-a", "-m", "t", "v1"]);
    let incoming = server.incoming("kinds").await;
    incoming.receive(&work.pack(&["v1"])[..], &ReceiveLimits::default(), None).await.unwrap();
    let (tag, tree) = (work.oid("v1"), work.oid("HEAD^{tree}"));
    let mut connected = server.connected(incoming, &[update("refs/tags/t", Oid::ZERO, tree)]).await;
    assert_eq!(connected.extend(&[update("refs/tags/v1", Oid::ZERO, tag)]).await.unwrap(), []);
    for wrong in [tag, tree] {
        let refused = connected.extend(&creating(wrong)).await.unwrap();
        assert_eq!(names(&refused), ["refs/heads/main"], "also what was proved complete as a tag");
    }
}

fn names(refused: &[RefusedTip]) -> Vec<String> {
    refused.iter().map(|tip| tip.name.to_string()).collect()
}

#[tokio::test]
async fn damaged_packs_are_refused() {
    let (server, work) = (Server::new().await, Work::new());
    for commits in [2, 60] {
        work.commits(commits);
        let pack = work.pack(&["main"]);
        let mut flipped = pack.clone();
        let last = flipped.len() - 1;
        flipped[last] ^= 1;
        let mut torn = pack.clone();
        torn.truncate(pack.len() / 2);
        let mut garbage = pack.clone();
        garbage[14..40].fill(0xff);
        for (what, bytes) in [("flipped", flipped), ("torn", torn), ("garbage", garbage)] {
            let incoming = server.incoming("damaged").await;
            let result = incoming.receive(&bytes[..], &ReceiveLimits::default(), None).await;
            let fits = match &result {
                Err(ReceiveError::BadPack(_)) => what == "flipped",
                Err(ReceiveError::Truncated) => what == "torn",
                Err(ReceiveError::Flaw(Flaw::Damaged(_))) => what == "garbage",
                _ => false,
            };
            assert!(fits, "{commits} {what}: {result:?}");
            incoming.discard().await.unwrap();
        }
    }
    let incoming = server.incoming("nopack").await;
    let result = incoming.receive(&b"GET / HTTP/1.1\r\n\r\n"[..], &ReceiveLimits::default(), None).await;
    assert!(matches!(result, Err(ReceiveError::Flaw(Flaw::NotAPack))), "{result:?}");
    let result = incoming.receive(&b"PACK"[..], &ReceiveLimits::default(), None).await;
    assert!(matches!(result, Err(ReceiveError::Truncated)), "{result:?}");
    server.fsck();
}

#[tokio::test]
async fn hostile_objects_are_refused_and_old_mistakes_are_not() {
    let server = Server::new().await;
    let modules = "[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n";
    for (key, file, content, hostile) in [("a", ".gitmodules", modules, true), ("b", "README", modules, false)] {
        let work = Work::new();
        std::fs::write(work.path().join(file), content).unwrap();
        let tip = work.commit("one");
        for unpack_limit in [100, 1] {
            let limits = ReceiveLimits { unpack_limit, ..ReceiveLimits::default() };
            let incoming = server.incoming(&format!("{key}{unpack_limit}")).await;
            let result = incoming.receive(&work.pack(&[&tip.to_string()])[..], &limits, None).await;
            assert_eq!(matches!(result, Err(ReceiveError::BadPack(_))), hostile, "{result:?}");
        }
    }
    let work = Work::new();
    let tree = work.feed(&["mktree"], b"");
    let tree = String::from_utf8(tree).unwrap();
    let commit = format!("tree {tree}author a <a@b> 1 +051800\ncommitter a <a@b> 1 +0000\n\nold\n");
    let tip = String::from_utf8(
        work.feed(&["hash-object", "-t", "commit", "--literally", "-w", "--stdin"], commit.as_bytes()),
    )
    .unwrap();
    for unpack_limit in [100, 1] {
        let limits = ReceiveLimits { unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming(&format!("zone{unpack_limit}")).await;
        incoming.receive(&work.pack(&[tip.trim()])[..], &limits, None).await.unwrap();
    }
}

#[tokio::test]
async fn packs_over_the_limit_are_refused() {
    let (server, work) = (Server::new().await, Work::new());
    work.commits(60);
    let pack = work.pack(&["main"]);
    for unpack_limit in [1, 1000] {
        let limits = ReceiveLimits { pack_bytes: pack.len() as u64 - 1, unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming("large").await;
        let result = incoming.receive(&pack[..], &limits, None).await;
        assert!(matches!(result, Err(ReceiveError::Flaw(Flaw::TooLarge(_)))), "{result:?}");
        incoming.discard().await.unwrap();
        let limits = ReceiveLimits { pack_bytes: pack.len() as u64, unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming("exact").await;
        incoming.receive(&pack[..], &limits, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_stands_still_is_given_up() {
    let (server, work) = (Server::new().await, Work::new());
    work.commits(60);
    let pack = work.pack(&["main"]);
    let limits = ReceiveLimits { idle: Duration::from_millis(100), ..ReceiveLimits::default() };
    for sent in [0, 5, pack.len() / 2] {
        let (mut client, ours) = tokio::io::duplex(1024 * 1024);
        client.write_all(&pack[..sent]).await.unwrap();
        let incoming = server.incoming(&format!("still{sent}")).await;
        let result = incoming.receive(ours, &limits, None).await;
        assert!(matches!(result, Err(ReceiveError::Idle(_))), "{sent}: {result:?}");
    }
}

#[tokio::test]
async fn a_client_that_keeps_its_side_open_after_the_pack_is_not_idle() {
    let (server, work) = (Server::new().await, Work::new());
    for commits in [2, 60] {
        work.commits(commits);
        let pack = work.pack(&["main"]);
        let (mut client, ours) = tokio::io::duplex(1024 * 1024);
        client.write_all(&pack).await.unwrap();
        let incoming = server.incoming(&format!("open{commits}")).await;
        let outcome = incoming.receive(ours, &ReceiveLimits::default(), None).await.unwrap();
        assert_eq!(outcome.bytes, pack.len() as u64);
        drop(client);
    }
}

#[tokio::test]
async fn progress_reaches_whoever_listens() {
    let (server, work) = (Server::new().await, Work::new());
    let mut text: String = (0..2000).map(|line| format!("line {line}\n")).collect();
    for number in 0..3 {
        text += &number.to_string();
        work.commit(&text);
    }
    let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
    let limits = ReceiveLimits { unpack_limit: 1, ..ReceiveLimits::default() };
    let incoming = server.incoming("progress").await;
    incoming.receive(&work.pack(&["main"])[..], &limits, Some(sender)).await.unwrap();
    let mut heard = Vec::new();
    while let Some(piece) = receiver.recv().await {
        heard.extend_from_slice(&piece);
    }
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard.contains("Resolving deltas: 100%") && !heard.contains('\0'), "{heard:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing() {
    let (server, work) = (Server::new().await, Work::new());
    work.commits(60);
    let pack = work.pack(&["main"]);
    let (mut client, ours) = tokio::io::duplex(1024 * 1024);
    client.write_all(&pack[..pack.len() / 2]).await.unwrap();
    let incoming = server.incoming("cancelled").await;
    let push = async move { incoming.receive(ours, &ReceiveLimits::default(), None).await };
    assert!(tokio::time::timeout(Duration::from_millis(200), push).await.is_err());
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if list_incoming(&server.layout).unwrap().is_empty() {
            return;
        }
    }
    // git may write once more while the area is removed; then the sweep removes the rest.
    remove_incoming(&server.layout, "cancelled").await.unwrap();
    assert!(list_incoming(&server.layout).unwrap().is_empty());
}

#[tokio::test]
async fn an_object_that_claims_to_be_huge_takes_no_memory() {
    let server = Server::new().await;
    // A commit header that claims 64 GiB. The rest does not matter: git would allocate the memory first.
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    let mut size: u64 = 64 << 30;
    pack.push(0x80 | 1 << 4 | (size & 15) as u8);
    size >>= 4;
    while size > 127 {
        pack.push(0x80 | (size & 127) as u8);
        size >>= 7;
    }
    pack.push(size as u8);
    pack.extend_from_slice(&[0x78, 0x9c]);
    for unpack_limit in [1, 100] {
        let limits = ReceiveLimits { unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming(&format!("huge{unpack_limit}")).await;
        match incoming.receive(&pack[..], &limits, None).await {
            Err(ReceiveError::Flaw(Flaw::Structure { size, limit })) => assert_eq!((size, limit), (64 << 30, 32 << 20)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_same_objects_pushed_at_once_are_all_taken() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commits(60);
    let pack = work.pack(&["main"]);
    let pushes = (0..4).map(|number| {
        let (git, layout, id, pack) = (server.git.clone(), server.layout.clone(), server.id, pack.clone());
        tokio::spawn(async move {
            let incoming = abide_git::Incoming::create(&git, &layout, id, &format!("p{number}")).await.unwrap();
            incoming.receive(&pack[..], &ReceiveLimits::default(), None).await.unwrap();
            let (connected, refused) = incoming.connect(&creating(tip)).await.unwrap();
            assert_eq!(refused, []);
            connected.migrate(&layout.repo(id)).await.unwrap();
            connected.discard().await.unwrap();
        })
    });
    for push in pushes.collect::<Vec<_>>() {
        push.await.unwrap();
    }
    assert_eq!(server.run(&["cat-file", "-t", &tip.to_string()]), "commit");
    server.fsck();
}

fn stranger() -> Client {
    Client::new(Some([192, 0, 2, 1].into()), None)
}

/// A repository whose only tree takes this many bytes in memory, and few in a pack.
fn huge_directory(bytes: usize) -> (Work, Oid) {
    let work = Work::new();
    let blob = String::from_utf8(work.feed(&["hash-object", "-w", "--stdin"], b"")).unwrap();
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap()).collect();
    let mut tree = Vec::new();
    for number in 0..bytes / 237 {
        tree.extend(format!("100644 {number:0209}\0").into_bytes());
        tree.extend(&id);
    }
    let tree =
        String::from_utf8(work.feed(&["hash-object", "-t", "tree", "--literally", "-w", "--stdin"], &tree)).unwrap();
    let tip = work.run(&["commit-tree", tree.trim(), "-m", "huge"]);
    work.run(&["update-ref", "refs/heads/main", &tip]);
    let tip = work.oid("main");
    (work, tip)
}

#[tokio::test]
async fn a_push_that_needs_more_memory_than_its_ration_is_refused_by_the_kernel() {
    let limits = GitLimits { stranger_memory: 24 << 20, ..GitLimits::default() };
    let server = Server::with(limits).await;
    let (work, tip) = huge_directory(30 << 20);
    let pack = work.pack(&["main"]);
    assert!(pack.len() < 8 << 20, "{}", pack.len());
    for unpack_limit in [1, 100] {
        let limits = ReceiveLimits { unpack_limit, ..ReceiveLimits::default() };
        let incoming = server.incoming(&format!("stranger{unpack_limit}")).await.of(stranger());
        let result = incoming.receive(&pack[..], &limits, None).await;
        assert!(matches!(result, Err(ReceiveError::TooDear("memory"))), "{result:?}");
    }
    let incoming = server.incoming("account").await;
    incoming.receive(&pack[..], &ReceiveLimits::default(), None).await.unwrap();
    let (connected, refused) = incoming.connect(&creating(tip)).await.unwrap();
    assert!(refused.is_empty());
    connected.migrate(&server.repo).await.unwrap();
    // Work for a stranger's nostr event has the same limits.
    let signer = Client::signer(None, None, [1; 32]);
    let mut here = abide_git::Connected::in_place(&server.git, server.repo.clone()).of(signer);
    let walked = here.extend(&creating(tip)).await;
    assert!(matches!(walked, Err(abide_git::GitError::UsedUp { of: "memory", .. })), "{walked:?}");
    let copy = server.incoming("copy").await.of(signer);
    let copied = copy.fill(&[server.repo.join("objects")], &[tip], &[]).await;
    assert!(matches!(copied, Err(abide_git::GitError::UsedUp { of: "memory", .. })), "{copied:?}");
    let mut here = abide_git::Connected::in_place(&server.git, server.repo.clone());
    assert_eq!(here.extend(&creating(tip)).await.unwrap(), []);
}

#[tokio::test]
async fn a_delta_bomb_is_refused_before_git_is_started() {
    // The repository is removed, so starting git would fail with another error.
    let server = Server::new().await;
    std::fs::remove_dir_all(&server.repo).unwrap();
    let bomb = delta_bomb(1000, 50 << 20);
    assert!(bomb.len() < 64 << 10, "{}", bomb.len());
    let limits = ReceiveLimits { unpacked_bytes: 512 << 20, ..ReceiveLimits::default() };
    let incoming = server.incoming("bomb").await.of(stranger());
    let result = incoming.receive(&bomb[..], &limits, None).await;
    assert!(matches!(result, Err(ReceiveError::Flaw(Flaw::TooDense(_)))), "{result:?}");
}

/// Deltas of a few bytes each, with large results.
fn delta_bomb(deltas: u32, size: u64) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value > 127 {
            bytes.push(0x80 | (value & 127) as u8);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let delta = [varint(1 << 20), varint(size), vec![0x90, 1]].concat();
    let stored = {
        // A zlib stream of one stored block.
        let length = delta.len() as u16;
        let (mut a, mut b) = (1u32, 0u32);
        for &byte in &delta {
            a = (a + u32::from(byte)) % 65521;
            b = (b + a) % 65521;
        }
        let sum = (b << 16 | a).to_be_bytes().to_vec();
        let (low, high) = (length.to_le_bytes().to_vec(), (!length).to_le_bytes().to_vec());
        [vec![0x78, 0x01, 0x01], low, high, delta.clone(), sum].concat()
    };
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(deltas.to_be_bytes());
    for _ in 0..deltas {
        pack.push(7 << 4 | delta.len() as u8 & 15);
        pack.extend([9; 20]);
        pack.extend(&stored);
    }
    pack.extend([0; 20]);
    pack
}

#[tokio::test]
async fn a_large_text_that_deflates_well_is_taken_from_anybody() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commit(&"a line that is said again and again\n".repeat(3_000_000));
    let pack = work.pack(&["main"]);
    assert!(pack.len() < 1 << 20);
    for unpack_limit in [1, 100] {
        let limits = ReceiveLimits { unpack_limit, unpacked_bytes: 512 << 20, ..ReceiveLimits::default() };
        let incoming = server.incoming(&format!("text{unpack_limit}")).await.of(stranger());
        incoming.receive(&pack[..], &limits, None).await.unwrap();
        let (_connected, refused) = incoming.connect(&creating(tip)).await.unwrap();
        assert!(refused.is_empty());
    }
}

#[tokio::test]
async fn a_pack_that_arrives_slowly_holds_no_slot_of_those_that_are_unpacked() {
    let limits = GitLimits { stranger_unpacks: 1, ..GitLimits::default() };
    let (server, work) = (Server::with(limits).await, Work::new());
    work.commits(60);
    let pack = work.pack(&["main"]);
    let (mut slow, ours) = tokio::io::duplex(1024 * 1024);
    slow.write_all(&pack[..pack.len() - 1]).await.unwrap();
    let waiting = server.incoming("slow").await.of(stranger());
    let waiting = tokio::spawn(async move { waiting.receive(ours, &ReceiveLimits::default(), None).await });
    let other = server.incoming("other").await.of(Client::new(Some([192, 0, 2, 2].into()), None));
    other.receive(&pack[..], &ReceiveLimits::default(), None).await.unwrap();
    assert!(!waiting.is_finished());
    slow.write_all(&pack[pack.len() - 1..]).await.unwrap();
    waiting.await.unwrap().unwrap();
}
