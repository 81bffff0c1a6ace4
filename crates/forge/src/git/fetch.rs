//! Fetches: refs are answered from memory, packs are streamed through git.

use super::push::Input;
use super::ref_list::RefList;
use super::snapshots::{self, Refs};
use super::{AGENT, ProtocolVersion, Transport, ensure_directory, error_packet, moved_hint};
use crate::context::standing::{ASK_EVERY, Standing};
use crate::disk::{self, Writer};
use crate::open::{RepoLocator, open};
use crate::{Access, Caller, Fault, Forge};
use abide_core::patience::Patience;
use abide_core::policy::Action;
use abide_core::scope::Scope;
use abide_git::hint::Hinted;
use abide_git::pace::Paced;
use abide_git::upload::{self, UploadPack};
use abide_git::v2::{self, V2Request};
use abide_git::{Client, Cutter, GitError, PacketReader, Pumped, advertise, bare};
use abide_macros::boxed;
use abide_store::nostr::{self, purgatory};
use abide_store::repos::Repo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

/// Longest fetch request (wants and haves), decompressed.
const MAX_REQUEST: u64 = 64 << 20;

/// Longest fetch request without an account: room for 300,000 refs.
const STRANGERS_REQUEST: u64 = 16 << 20;

/// How long a client may look through a pack before it says in the same conversation that it wants nothing more.
const UNPACKING: Duration = Duration::from_secs(900);

/// A fetch that the policy allows.
#[derive(Debug, Clone)]
pub struct FetchAdmission {
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
#[boxed]
pub async fn admit(
    forge: &Forge,
    caller: &Caller,
    locator: &RepoLocator,
    transport: Transport,
) -> Result<FetchAdmission, Access> {
    caller.ensure_scope(Scope::RepoRead)?;
    let admission =
        |source, hint| FetchAdmission { source, hint, client: caller.client(), standing: caller.standing.clone() };
    match open(forge, caller, locator, Action::RepoRead).await {
        Ok(repo) => {
            let hint = moved_hint(forge, locator, &repo, transport);
            Ok(admission(Source::Repo(Box::new(repo)), hint))
        }
        Err(Access::NotFound) if waits(forge, locator).await? => Ok(admission(Source::Nothing, None)),
        Err(error) => Err(error),
    }
}

/// Whether this coordinate has a repository in purgatory and none that is served.
async fn waits(forge: &Forge, locator: &RepoLocator) -> Result<bool, Fault> {
    let RepoLocator::Nostr { owner, identifier } = locator else { return Ok(false) };
    let mut conn = forge.store().read().await?;
    if nostr::repos::id_of(&mut conn, owner.as_bytes(), identifier).await?.is_some() {
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
#[boxed]
pub async fn advertisement(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
) -> Result<RefList, Fault> {
    first_words(forge, admission, version, true).await
}

async fn first_words(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    stateless: bool,
) -> Result<RefList, Fault> {
    let capabilities = forge.git().upload_capabilities().await?;
    if version == ProtocolVersion::V2 {
        return Ok(RefList::Whole(Some(advertise::upload_pack_v2(capabilities))));
    }
    let refs = refs(forge, &admission.source).await?;
    Ok(RefList::of(advertise::upload_pack(refs, capabilities, version, stateless)))
}

/// Response to one request.
pub enum Answer {
    /// It comes from refs.
    Refs(RefList),
    /// Produced by git while it is read. Dropping it kills git.
    Stream(Box<Hinted<Pumped>>),
}

/// Answers one request of a stateless client. Request and response end within seconds after the caller's credential is
/// revoked.
pub async fn answer(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin + Send,
) -> Result<Answer, Fault> {
    answer_while_welcome(forge, admission, version, Box::new(input)).await
}

#[boxed]
async fn answer_while_welcome(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    input: Input<'_>,
) -> Result<Answer, Fault> {
    tokio::select! {
        answer = make_answer(forge, admission, version, input) => answer,
        () = admission.standing.lost(forge) => Err(Fault::Revoked),
    }
}

async fn make_answer(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    input: Input<'_>,
) -> Result<Answer, Fault> {
    let mut reader = PacketReader::new(Paced::new(input, forge.patience()));
    if version == ProtocolVersion::V2 {
        let request = v2::read_request(&mut reader).await.map_err(GitError::Client)?;
        if let V2Request::LsRefs(request) = request {
            return Ok(Answer::Refs(RefList::of(advertise::ls_refs(refs(forge, &admission.source).await?, request))));
        }
    }
    // Read the whole request before taking a slot: a client that stalls holds none.
    let request =
        upload::read_request(forge.git(), admission.client, reader, longest_request(forge, admission)).await?;
    metrics::counter!("abide_fetches_total", "transport" => "http").increment(1);
    let stream = upload::spawn(forge.git(), &call(forge, admission, version).await?, request).await?;
    end_with(forge, &admission.standing, stream.cutter());
    let hint = admission.hint.as_deref().filter(|_| version == ProtocolVersion::V2);
    Ok(Answer::Stream(Box::new(Hinted::new(stream, hint))))
}

/// Ends git's answer when the caller's credential is revoked, even while the client reads nothing.
pub(crate) fn end_with(forge: &Forge, standing: &Standing, answer: Cutter) {
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
fn longest_request(forge: &Forge, admission: &FetchAdmission) -> u64 {
    let (writer, most) = match admission.client.is_stranger() {
        true => (Writer::Stranger, STRANGERS_REQUEST),
        false => (Writer::Account, MAX_REQUEST),
    };
    match disk::ensure_room_for(forge, writer, most) {
        Ok(()) => most,
        Err(_) => upload::SMALL_REQUEST,
    }
}

/// Holds a whole conversation with a client that stays connected. The client hears of refs without git; a slot is taken and git
/// is started for what it wants to have, once it has said all of that.
pub async fn converse(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send,
) -> Result<(), Fault> {
    converse_while_welcome(forge, admission, version, Box::new(input), Box::new(output)).await
}

#[boxed]
async fn converse_while_welcome(
    forge: &Forge,
    admission: &FetchAdmission,
    version: ProtocolVersion,
    input: Input<'_>,
    output: Output<'_>,
) -> Result<(), Fault> {
    let mut talk = Talk { forge, admission, version, output };
    tokio::select! {
        held = Box::pin(talk.hold(input)) => held,
        () = admission.standing.lost(forge) => Err(Fault::Revoked),
    }
}

/// Where the answers to a client go.
type Output<'a> = Box<dyn AsyncWrite + Send + Unpin + 'a>;

struct Talk<'a, W> {
    forge: &'a Forge,
    admission: &'a FetchAdmission,
    version: ProtocolVersion,
    output: W,
}

impl<W: AsyncWrite + Unpin> Talk<'_, W> {
    async fn hold(&mut self, input: impl AsyncRead + Unpin) -> Result<(), Fault> {
        let first = first_words(self.forge, self.admission, self.version, false).await?;
        self.send_list(first).await?;
        let mut reader = PacketReader::new(Paced::new(input, self.forge.patience()));
        if self.version != ProtocolVersion::V2 {
            return self.go_on(reader).await;
        }
        let mut patience = self.forge.patience();
        loop {
            // Nothing is held for a client that thinks, so each command has a patience of its own.
            reader.get_mut().renew(patience);
            patience = self.forge.patience();
            let request = v2::read_request(&mut reader).await.map_err(GitError::Client)?;
            if let V2Request::LsRefs(request) = request {
                let refs = refs(self.forge, &self.admission.source).await;
                let refs = self.or_report(refs).await?;
                self.send_list(RefList::of(advertise::ls_refs(refs, request))).await?;
                continue;
            }
            let Some(request) = self.request(&mut reader).await? else { return Ok(()) };
            let call = call(self.forge, self.admission, self.version).await;
            let call = self.or_report(call).await?;
            let spawned = upload::spawn(self.forge.git(), &call, request).await;
            let answer = self.or_report(spawned).await?;
            upload::send(answer, &mut self.output, patience).await?;
            patience = Patience::new(UNPACKING.max(patience.full()), patience.bytes_per_second());
        }
    }

    /// Versions 0 and 1: git goes on where the client has said what it wants.
    async fn go_on<R: AsyncRead + Unpin>(&mut self, mut reader: PacketReader<Paced<R>>) -> Result<(), Fault> {
        let Some(opening) = self.request(&mut reader).await? else { return Ok(()) };
        let call = call(self.forge, self.admission, self.version).await;
        let call = self.or_report(call).await?;
        let (rest, paced) = reader.into_parts();
        let input = std::io::Cursor::new(rest).chain(paced.into_inner());
        let served = upload::serve(self.forge.git(), &call, opening, input, &mut self.output).await;
        match served {
            Err(busy @ GitError::Busy { .. }) => self.or_report::<()>(Err(busy)).await,
            served => Ok(served?),
        }
    }

    /// All that the client wants, before a slot is taken.
    async fn request<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut PacketReader<R>,
    ) -> Result<Option<upload::Request>, Fault> {
        let most = longest_request(self.forge, self.admission);
        let request = upload::read_section(self.forge.git(), self.admission.client, reader, most).await;
        let request = self.or_report(request).await?;
        if request.is_some() {
            metrics::counter!("abide_fetches_total", "transport" => "ssh").increment(1);
        }
        Ok(request)
    }

    /// Reports a failure to the client, unless the client has disconnected.
    async fn or_report<T>(&mut self, outcome: Result<T, impl Into<Fault>>) -> Result<T, Fault> {
        let fault = match outcome {
            Ok(value) => return Ok(value),
            Err(error) => error.into(),
        };
        if !fault.is_clients() {
            let words = error_packet(&fault.public_message());
            upload::send_piece(&mut self.output, &words, &mut self.forge.patience()).await?;
        }
        Err(fault)
    }

    async fn send_list(&mut self, list: RefList) -> Result<(), Fault> {
        let held = list.hold(self.admission.client);
        let _held = self.or_report(held).await?;
        let mut patience = self.forge.patience();
        for piece in list {
            upload::send_piece(&mut self.output, &piece, &mut patience).await?;
        }
        Ok(())
    }
}

async fn call(forge: &Forge, admission: &FetchAdmission, protocol: ProtocolVersion) -> Result<UploadPack, Fault> {
    let repo = match &admission.source {
        Source::Repo(repo) => {
            ensure_directory(forge, repo).await?;
            forge.layout().repo(repo.id)
        }
        Source::Nothing => bare::init_empty(forge.layout()).await?,
    };
    Ok(UploadPack { repo, protocol, patience: forge.patience(), client: admission.client })
}

/// First response to a pushing client.
pub(super) async fn push_advertisement(forge: &Forge, repo: &Repo, version: ProtocolVersion) -> Result<RefList, Fault> {
    let refs = snapshots::read(forge, repo).await?;
    Ok(RefList::of(advertise::receive_pack(refs, AGENT, version)))
}

/// First response to a client that pushes to a repository without git data.
pub(super) fn empty_push_advertisement(version: ProtocolVersion) -> RefList {
    RefList::of(advertise::receive_pack(Refs::nothing(), AGENT, version))
}
