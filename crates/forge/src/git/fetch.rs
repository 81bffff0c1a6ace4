//! Fetching: refs are answered from memory, packs are streamed through git.

use super::{AGENT, ProtocolVersion, Transport, ensure_directory, moved_hint, snapshots};
use crate::repos::open::{Door, open};
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::scope::Scope;
use abide_git::hint::Hinted;
use abide_git::upload::{self, UploadPack, UploadStream};
use abide_git::v2::{self, V2Request};
use abide_git::{PacketReader, advertise};
use abide_store::repos::Repo;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// A fetch that the policy allows.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Where from.
    pub repo: Repo,
    /// What to tell the person at the other end.
    pub hint: Option<String>,
}

/// Opens a repository for fetching.
pub async fn admit(forge: &Forge, caller: &Caller, door: &Door, transport: Transport) -> Result<Ticket, Access> {
    caller.ensure_scope(Scope::RepoRead)?;
    let repo = open(forge, caller, door, Action::RepoRead).await?;
    Ok(Ticket { hint: moved_hint(forge, door, &repo, transport), repo })
}

/// What a client of one-request transports hears first.
pub async fn advertisement(forge: &Forge, repo: &Repo, version: ProtocolVersion) -> Result<Bytes, Fault> {
    let capabilities = forge.git().upload_capabilities();
    if version == ProtocolVersion::V2 {
        return Ok(advertise::upload_pack_v2(capabilities));
    }
    let refs = snapshots::read(forge, repo).await?;
    Ok(advertise::upload_pack(&refs, capabilities, version))
}

/// An answer to one request.
pub enum Answer {
    /// It was known.
    Ready(Bytes),
    /// git makes it while it is read. Dropping it ends git.
    Stream(Box<Hinted<UploadStream>>),
}

/// Answers one request of a stateless client.
pub async fn answer(
    forge: &Forge,
    Ticket { repo, hint }: &Ticket,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin + Send + 'static,
) -> Result<Answer, Fault> {
    let mut reader = PacketReader::new(input);
    if version == ProtocolVersion::V2 {
        let request = v2::read_request(&mut reader).await.map_err(abide_git::GitError::Client)?;
        if let V2Request::LsRefs(request) = request {
            let refs = snapshots::read(forge, repo).await?;
            return Ok(Answer::Ready(advertise::ls_refs(&refs, &request)));
        }
    }
    ensure_directory(forge, repo).await?;
    metrics::counter!("abide_fetches_total", "transport" => "http").increment(1);
    let stream = upload::spawn(forge.git(), &call(forge, repo, version, true), reader).await?;
    let hint = hint.as_deref().filter(|_| version == ProtocolVersion::V2);
    Ok(Answer::Stream(Box::new(Hinted::new(stream, hint))))
}

/// Holds a whole conversation with a client that stays connected.
pub async fn converse(
    forge: &Forge,
    repo: &Repo,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), Fault> {
    // Sets HEAD right if a crash left it behind, which git reads by itself here.
    drop(snapshots::read(forge, repo).await?);
    metrics::counter!("abide_fetches_total", "transport" => "ssh").increment(1);
    Ok(upload::serve(forge.git(), &call(forge, repo, version, false), input, output).await?)
}

fn call(forge: &Forge, repo: &Repo, protocol: ProtocolVersion, stateless: bool) -> UploadPack {
    UploadPack { repo: forge.layout().repo(repo.id), stateless, protocol, idle: forge.settings().idle_timeout }
}

/// What a pushing client hears first.
pub(super) async fn push_advertisement(forge: &Forge, repo: &Repo, version: ProtocolVersion) -> Result<Bytes, Fault> {
    let refs = snapshots::read(forge, repo).await?;
    Ok(advertise::receive_pack(&refs, AGENT, version))
}
