//! Fetches: refs are answered from memory, packs are streamed through git.

use super::snapshots::{self, Refs};
use super::{AGENT, ProtocolVersion, Transport, ensure_directory, moved_hint};
use crate::accounts::standing::{ASK_EVERY, Standing};
use crate::disk::{self, Writer};
use crate::repos::open::{Door, open};
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::scope::Scope;
use abide_git::hint::Hinted;
use abide_git::pace::Paced;
use abide_git::upload::{self, UploadPack};
use abide_git::v2::{self, V2Request};
use abide_git::{Client, Cutter, PacketReader, Pumped, Snapshot, advertise, bare};
use abide_store::repos::Repo;
use abide_store::{nostr_repos, purgatory};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// Longest fetch request (wants and haves), decompressed.
const MAX_REQUEST: u64 = 64 << 20;

/// Longest fetch request without an account: room for 300,000 refs.
const STRANGERS_REQUEST: u64 = 16 << 20;

/// A fetch that the policy allows.
#[derive(Debug, Clone)]
pub struct Ticket {
    source: Source,
    /// Message for the user.
    pub hint: Option<String>,
    client: Client,
    standing: Standing,
}

/// Source of a fetch.
#[derive(Debug, Clone)]
enum Source {
    Repo(Box<Repo>),
    /// A repository in purgatory: everyone reads the same empty repository.
    Nothing,
}

/// Opens a repository for fetching.
pub async fn admit(forge: &Forge, caller: &Caller, door: &Door, transport: Transport) -> Result<Ticket, Access> {
    caller.ensure_scope(Scope::RepoRead)?;
    let ticket = |source, hint| Ticket { source, hint, client: caller.client(), standing: caller.standing.clone() };
    match open(forge, caller, door, Action::RepoRead).await {
        Ok(repo) => {
            let hint = moved_hint(forge, door, &repo, transport);
            Ok(ticket(Source::Repo(Box::new(repo)), hint))
        }
        Err(Access::NotFound) if waits(forge, door).await? => Ok(ticket(Source::Nothing, None)),
        Err(error) => Err(error),
    }
}

/// Whether this coordinate has a repository in purgatory and none that is served.
async fn waits(forge: &Forge, door: &Door) -> Result<bool, Fault> {
    let Door::Nostr { owner, identifier } = door else { return Ok(false) };
    let mut conn = forge.store().read().await?;
    if nostr_repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, None).await?.is_some() {
        return Ok(false);
    }
    let entry = purgatory::announcement(&mut conn, owner.as_bytes(), identifier).await?;
    Ok(entry.is_some_and(|entry| entry.repo_id.is_some()))
}

/// Refs of a source.
async fn refs(forge: &Forge, source: &Source) -> Result<Refs, Fault> {
    match source {
        Source::Repo(repo) => snapshots::read(forge, repo).await,
        Source::Nothing => Ok(Refs::nothing()),
    }
}

/// First response to a client of a stateless transport.
pub async fn advertisement(forge: &Forge, ticket: &Ticket, version: ProtocolVersion) -> Result<Bytes, Fault> {
    let capabilities = forge.git().upload_capabilities().await?;
    if version == ProtocolVersion::V2 {
        return Ok(advertise::upload_pack_v2(capabilities));
    }
    Ok(advertise::upload_pack(&*refs(forge, &ticket.source).await?, capabilities, version))
}

/// Response to one request.
pub enum Answer {
    /// Known in full.
    Ready(Bytes),
    /// Produced by git while it is read. Dropping it kills git.
    Stream(Box<Hinted<Pumped>>),
}

/// Answers one request of a stateless client. Request and response end within seconds after the caller's credential is
/// revoked.
pub async fn answer(
    forge: &Forge,
    ticket: &Ticket,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin + Send,
) -> Result<Answer, Fault> {
    tokio::select! {
        answer = make_answer(forge, ticket, version, input) => answer,
        () = ticket.standing.lost(forge) => Err(Fault::Revoked),
    }
}

async fn make_answer(
    forge: &Forge,
    ticket: &Ticket,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin + Send,
) -> Result<Answer, Fault> {
    let mut reader = PacketReader::new(Paced::new(input, forge.patience()));
    if version == ProtocolVersion::V2 {
        let request = v2::read_request(&mut reader).await.map_err(abide_git::GitError::Client)?;
        if let V2Request::LsRefs(request) = request {
            return Ok(Answer::Ready(advertise::ls_refs(&*refs(forge, &ticket.source).await?, &request)));
        }
    }
    // Read the whole request before taking a slot: a client that stalls holds none.
    let request = upload::read_request(forge.git(), ticket.client, reader, longest_request(forge, ticket)).await?;
    metrics::counter!("abide_fetches_total", "transport" => "http").increment(1);
    let stream = upload::spawn(forge.git(), &call(forge, ticket, version, true).await?, request).await?;
    end_with(forge, &ticket.standing, stream.cutter());
    let hint = ticket.hint.as_deref().filter(|_| version == ProtocolVersion::V2);
    Ok(Answer::Stream(Box::new(Hinted::new(stream, hint))))
}

/// Ends git's answer when the caller's credential is revoked, even while the client reads nothing.
fn end_with(forge: &Forge, standing: &Standing, answer: Cutter) {
    if *standing == Standing::Anonymous {
        return;
    }
    let (forge, standing) = (forge.clone(), standing.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = standing.lost(&forge) => answer.cut(),
            () = answer.ended(ASK_EVERY) => {}
        }
    });
}

/// Longest accepted request. When the disk is full, only requests that need no disk space are accepted.
fn longest_request(forge: &Forge, ticket: &Ticket) -> u64 {
    let (writer, most) = match ticket.client.is_stranger() {
        true => (Writer::Stranger, STRANGERS_REQUEST),
        false => (Writer::Account, MAX_REQUEST),
    };
    match disk::ensure_room_for(forge, writer, most) {
        Ok(()) => most,
        Err(_) => upload::SMALL_REQUEST,
    }
}

/// Runs a whole conversation with a client that stays connected.
pub async fn converse(
    forge: &Forge,
    ticket: &Ticket,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), Fault> {
    // Repairs HEAD if a crash left it behind: here git reads HEAD itself.
    drop(refs(forge, &ticket.source).await?);
    metrics::counter!("abide_fetches_total", "transport" => "ssh").increment(1);
    let call = call(forge, ticket, version, false).await?;
    tokio::select! {
        served = upload::serve(forge.git(), &call, input, output) => Ok(served?),
        () = ticket.standing.lost(forge) => Err(Fault::Revoked),
    }
}

async fn call(forge: &Forge, ticket: &Ticket, protocol: ProtocolVersion, stateless: bool) -> Result<UploadPack, Fault> {
    let repo = match &ticket.source {
        Source::Repo(repo) => {
            ensure_directory(forge, repo).await?;
            forge.layout().repo(repo.id)
        }
        Source::Nothing => bare::init_empty(forge.layout()).await?,
    };
    Ok(UploadPack { repo, stateless, protocol, patience: forge.patience(), client: ticket.client })
}

/// First response to a pushing client.
pub(super) async fn push_advertisement(forge: &Forge, repo: &Repo, version: ProtocolVersion) -> Result<Bytes, Fault> {
    let refs = snapshots::read(forge, repo).await?;
    Ok(advertise::receive_pack(&refs, AGENT, version))
}

/// First response to a client that pushes to a repository without git data.
pub(super) fn empty_push_advertisement(version: ProtocolVersion) -> Bytes {
    advertise::receive_pack(&Snapshot::empty(), AGENT, version)
}
