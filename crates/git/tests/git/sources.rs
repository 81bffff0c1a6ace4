//! Fetching from another server, against git's own upload-pack.

use crate::source_support::{Script, Upstream, absent, fetched, v2, wire};
use crate::support::{Server, Work, update};
use abide_core::Oid;
use abide_git::fetch::{FetchClass, FetchError, Offer, Presence, Remote, Source};
use abide_git::{PackOutcome, ProtocolVersion, ReceiveLimits};

/// Fetches one object into an area of the server, which must connect it.
async fn arrives(server: &Server, remote: &dyn Remote, want: Oid, haves: &[Oid]) -> PackOutcome {
    let pack = fetched(remote, &[want], haves).await.unwrap();
    let incoming = server.incoming("fetched").await;
    let outcome = incoming.receive(pack, &ReceiveLimits::default(), None).await.unwrap();
    let connected = server.connected(incoming, &[update("refs/heads/fetched", Oid::ZERO, want)]).await;
    connected.migrate(&server.repo).await.unwrap();
    assert_eq!(server.run(&["cat-file", "-t", &want.to_string()]), "commit");
    server.fsck();
    outcome
}

/// A repository whose branch `main` is one commit behind the returned commit, which no ref reaches.
fn with_unadvertised() -> (Work, Oid, Oid) {
    let work = Work::new();
    let one = work.commit("one");
    let two = work.commit("two");
    work.run(&["update-ref", "refs/heads/main", &one.to_string()]);
    (work, one, two)
}

#[tokio::test]
async fn an_object_that_no_ref_reaches_is_fetched_by_its_id() {
    let ((work, _, two), server) = (with_unadvertised(), Server::new().await);
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    assert!(matches!(source.offer(), Offer::V2(offer) if offer.wait_for_done && offer.ls_refs), "{:?}", source.offer());
    let outcome = arrives(&server, &upstream, two, &[]).await;
    assert_eq!((outcome.objects, outcome.kept_as_pack), (6, false));
}

#[tokio::test]
async fn a_large_pack_arrives_whole() {
    let (work, server) = (Work::new(), Server::new().await);
    let tip = work.commits(3000);
    let outcome = arrives(&server, &Upstream::of(&work), tip, &[]).await;
    assert!(outcome.kept_as_pack && outcome.objects > 6000, "{outcome:?}");
}

#[tokio::test]
async fn a_thin_pack_is_completed_from_the_repository() {
    for old in [false, true] {
        let (work, server) = (Work::new(), Server::new().await);
        let long: String = (0..3000).map(|line| format!("line {line}\n")).collect();
        let one = work.commit(&long);
        work.push_to(&server);
        let two = work.commit(&(long + "and one more\n"));
        let upstream = if old { Upstream::old(&work, &[]) } else { Upstream::of(&work) };
        // The first have is not known there, and more than the limit are not named.
        let haves = [vec![absent(), one], vec![absent(); 1000]].concat();
        let outcome = arrives(&server, &upstream, two, &haves).await;
        assert!(outcome.bytes < 1500, "the pack is thin: {outcome:?}");
        let (up, _) = upstream.traffic();
        assert!(up < 50 * 260, "{up}");
    }
}

#[tokio::test]
async fn a_missing_object_is_named_and_the_others_are_fetched_without_it() {
    let ((work, one, two), server) = (with_unadvertised(), Server::new().await);
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let mut wants = vec![two, absent(), one];
    let refused = source.pack(&wants, &[]).await.unwrap_err();
    assert_eq!(refused, FetchError::NotOurRef(absent()));
    assert_eq!(refused.class(), FetchClass::NotOurRef);
    wants.retain(|oid| *oid != absent());
    let pack = source.pack(&wants, &[]).await.unwrap();
    let incoming = server.incoming("rest").await;
    assert_eq!(incoming.receive(pack, &ReceiveLimits::default(), None).await.unwrap().objects, 6);
}

#[tokio::test]
async fn a_probe_costs_few_bytes_and_tells_presence_from_absence() {
    let (work, one, two) = with_unadvertised();
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let (_, discovered) = upstream.traffic();
    for (oid, presence) in [(one, Presence::Has), (two, Presence::Has), (absent(), Presence::Lacks)] {
        assert_eq!(source.probe(&[oid]).await.unwrap().0, [(oid, presence)]);
        let (up, down) = upstream.traffic();
        assert!(up <= 150 && down + discovered <= 300, "{up} up, {discovered} + {down} down");
    }
    // git does not acknowledge the parent of an acknowledged commit, which says nothing about absence.
    let all = [two, absent(), one];
    let probe = source.probe(&all).await.unwrap();
    let presence = [Presence::Has, Presence::Lacks, Presence::Has];
    assert_eq!(probe.0, std::array::from_fn::<_, 3, _>(|i| (all[i], presence[i])));
    // More than one request takes.
    let many: Vec<Oid> =
        (0..600u32).map(|n| Oid::from_bytes(std::array::from_fn(|_| n as u8 | 1))).chain(all).collect();
    let probe = source.probe(&many).await.unwrap();
    assert_eq!(probe.0.len(), many.len());
    assert_eq!(probe.worth_fetching(), [two, one]);
}

#[tokio::test]
async fn a_probe_for_a_long_history_leaves_open_what_the_server_does_not_say() {
    let work = Work::new();
    work.commits(30);
    let history: Vec<Oid> = work.run(&["rev-list", "main"]).lines().map(|oid| oid.parse().unwrap()).collect();
    let upstream = Upstream::of(&work);
    let source = Source::discover(&upstream).await.unwrap();
    let probe = source.probe(&history).await.unwrap();
    assert_eq!((probe.0[0], probe.worth_fetching()), ((history[0], Presence::Has), history));
}

#[tokio::test]
async fn a_server_without_wait_for_done_knows_the_objects_of_its_refs_and_says_nothing_of_others() {
    let (work, one, two) = with_unadvertised();
    let tag = {
        work.run(&["tag", "-a", "-m", "tag", "v1", &two.to_string()]);
        work.oid("refs/tags/v1")
    };
    let expected = [(one, Presence::Has), (tag, Presence::Has), (two, Presence::Has), (absent(), Presence::Unknown)];
    let oids = expected.map(|(oid, _)| oid);
    // git's own list of refs behind an advertisement without the capability.
    let list = format!("{one} HEAD symref-target:refs/heads/main");
    let tagged = format!("{tag} refs/tags/v1 peeled:{two}");
    let unborn = "unborn HEAD symref-target:refs/heads/x";
    let advertised = wire(&["version 2", "ls-refs", "fetch=shallow", ""]);
    let server = Script::new([advertised, wire(&[unborn, &list, &tagged, ""])]);
    assert_eq!(Source::discover(&server).await.unwrap().probe(&oids).await.unwrap().0, expected);

    let old = Upstream::old(&work, &[]);
    let probe = Source::discover(&old).await.unwrap().probe(&oids).await.unwrap();
    assert_eq!(probe.0, expected);
    assert_eq!(probe.worth_fetching(), oids);
}

#[tokio::test]
async fn a_server_of_version_0_serves_its_refs_and_with_its_permission_other_objects() {
    let ((work, one, two), server) = (with_unadvertised(), Server::new().await);
    let strict = Upstream::old(&work, &[]);
    assert_eq!(arrives(&server, &strict, one, &[]).await.objects, 3);
    // Certain from the advertisement, so nothing is asked.
    strict.traffic();
    let refused = fetched(&strict, &[one, two], &[]).await.unwrap_err();
    assert_eq!((refused, strict.traffic().0), (FetchError::NotOurRef(two), 0));

    let open = Upstream::old(&work, &["uploadpack.allowAnySHA1InWant=true"]);
    assert_eq!(fetched(&open, &[one, absent()], &[]).await.unwrap_err(), FetchError::NotOurRef(absent()));
    assert_eq!(arrives(&server, &open, two, &[one]).await.objects, 3);
}

#[tokio::test]
async fn version_1_and_empty_repositories_are_understood() {
    let ((work, one, _), server) = (with_unadvertised(), Server::new().await);
    let mut middle = Upstream::of(&work);
    middle.newest = ProtocolVersion::V1;
    arrives(&server, &middle, one, &[]).await;
    let empty = Work::new();
    for upstream in [Upstream::of(&empty), Upstream::old(&empty, &[])] {
        assert_eq!(fetched(&upstream, &[one], &[]).await.unwrap_err(), FetchError::NotOurRef(one));
    }
    // Some servers send no line at all for an empty repository.
    let nothing = Script::new([wire(&["# service=git-upload-pack\n", "", ""])]);
    assert_eq!(fetched(&nothing, &[one], &[]).await.unwrap_err(), FetchError::NotOurRef(one));
    // Others name the service in version 2, too.
    let named = Script::new([[wire(&["# service=git-upload-pack\n", ""]), v2()].concat()]);
    assert!(matches!(Source::discover(&named).await.unwrap().offer(), Offer::V2(_)));
}

#[tokio::test]
async fn a_shallow_clone_is_no_source() {
    let (work, copy) = (Work::new(), Work::new());
    let tip = work.commits(3);
    copy.run(&["fetch", "-q", "--depth=1", &format!("file://{}", work.path().display()), "main:copy"]);
    for upstream in [Upstream::of(&copy), Upstream::old(&copy, &[])] {
        assert_eq!(fetched(&upstream, &[tip], &[]).await.unwrap_err(), FetchError::Shallow);
    }
}

#[tokio::test]
async fn a_fetch_asks_for_one_to_256_objects() {
    let canned = Script::new([v2()]);
    let source = Source::discover(&canned).await.unwrap();
    for count in [0, 257] {
        let error = source.pack(&vec![absent(); count], &[]).await.unwrap_err();
        assert_eq!((error.clone(), error.class()), (FetchError::WantCount(count), FetchClass::Local));
    }
}
