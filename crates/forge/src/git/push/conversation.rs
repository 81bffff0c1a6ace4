//! The client's side of a push: commands in, pack in, keep-alives and the report out.

use super::commit::{self, Work};
use super::{Target, Ticket, incoming_key, signed};
use crate::git::Transport;
use crate::git::snapshots::{self, Refs};
use crate::{Fault, Forge, disk};
use abide_core::push::{self, CurrentRefs};
use abide_core::{Oid, RefUpdate, failpoint};
use abide_git::receive::{self, BadRequest, ReceiveError};
use abide_git::report::{self, KEEPALIVE, RefResult, Report};
use abide_git::{Capabilities, Incoming, PacketReader, PushRequest, ReceiveLimits};
use bytes::Bytes;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::io::InspectReader;

/// Clients give up after fifteen silent seconds.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// Receives a push and sends the answer to `out`, which is closed at the end.
///
/// If the client goes away before the pack is complete, everything of it goes too.
pub async fn receive<R>(forge: &Forge, ticket: Ticket, input: R, out: mpsc::Sender<Bytes>)
where
    R: AsyncRead + Unpin + Send,
{
    let gone = out.clone();
    let mut reader = PacketReader::new(input);
    let rest = tokio::select! {
        () = gone.closed() => {
            metrics::counter!("abide_pushes_total", "end" => "client_gone").increment(1);
            Rest::Read
        }
        rest = converse(forge, ticket, &mut reader, out) => rest,
    };
    if rest == Rest::Unread {
        // After the report, not before it: over SSH some clients keep their side open until they have read it.
        tokio::select! {
            () = gone.closed() => {}
            () = crate::git::drain(forge, &mut reader) => {}
        }
    }
}

/// Whether a client may still be sending when it has its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// All that it sends was read.
    Read,
    /// The pack was not read, or not to its end.
    Unread,
}

async fn converse<R>(forge: &Forge, ticket: Ticket, reader: &mut PacketReader<R>, out: mpsc::Sender<Bytes>) -> Rest
where
    R: AsyncRead + Unpin + Send,
{
    let limits = limits(forge);
    let request = match receive::read_request(reader, &limits).await {
        Ok(Some(request)) => request,
        // git's probe before a large push: it only wanted to know whether it may.
        Ok(None) => return Rest::Read,
        Err(BadRequest { error, client }) => {
            let _ = out.send(report::refused_request(&client, &error.to_string())).await;
            return Rest::Unread;
        }
    };
    let client = Client::new(out, request.capabilities.clone());
    // Over SSH it was said at once, on standard error.
    let hint = ticket.hint.clone().filter(|_| ticket.transport == Transport::Http);
    let (report, rest) = match run(forge, ticket, &request, reader, &limits, &client).await {
        Ok((results, rest)) => (Report { unpack: Ok(()), refs: zip(&request, results) }, rest),
        Err(Stopped { reason, rest }) => {
            let results = request.updates.iter().map(|_| RefResult::Ng(reason.clone())).collect();
            (Report { unpack: Err(reason), refs: zip(&request, results) }, rest)
        }
    };
    let end = if report.refs.iter().all(|(_, result)| *result == RefResult::Ok) { "ok" } else { "refused" };
    metrics::counter!("abide_pushes_total", "end" => end).increment(1);
    if let Some(hint) = hint.filter(|_| client.capabilities.side_band_64k) {
        client.send(report::sideband_message(&hint)).await;
    }
    client.send(report.encode(&client.capabilities)).await;
    failpoint::hit(failpoint::PUSH_REPORTED);
    // Who sends no pack has nothing more to say.
    if request.needs_pack() { rest } else { Rest::Read }
}

fn zip(request: &PushRequest, results: Vec<RefResult>) -> Vec<(abide_core::RefName, RefResult)> {
    request.updates.iter().map(|update| update.name.clone()).zip(results).collect()
}

fn limits(forge: &Forge) -> ReceiveLimits {
    let settings = forge.settings();
    ReceiveLimits {
        commands: settings.max_push_commands,
        pack_bytes: settings.max_push_bytes,
        idle: settings.idle_timeout,
        unpack_limit: settings.unpack_limit,
        ..ReceiveLimits::default()
    }
}

/// The whole push failed, before any ref was looked at by itself.
pub(super) struct Stopped {
    pub reason: String,
    pub rest: Rest,
}

impl Stopped {
    /// What went wrong on our side is logged in full and told in short.
    pub(super) fn fault(fault: &Fault, rest: Rest) -> Self {
        let reason = match fault {
            Fault::DiskFull { .. } | Fault::Git(abide_git::GitError::Busy { .. }) => fault.to_string(),
            _ => {
                tracing::error!(error = %fault, "a push failed");
                "the server failed; nothing was changed, try again later".to_owned()
            }
        };
        Self { reason, rest }
    }
}

async fn run<R>(
    forge: &Forge,
    ticket: Ticket,
    request: &PushRequest,
    reader: &mut PacketReader<R>,
    limits: &ReceiveLimits,
    client: &Client,
) -> Result<(Vec<RefResult>, Rest), Stopped>
where
    R: AsyncRead + Unpin + Send,
{
    disk::ensure_room(forge).map_err(|fault| Stopped::fault(&fault, Rest::Unread))?;
    let repo = match &ticket.target {
        Target::Account(repo) => repo.clone(),
        Target::Signed { .. } => return signed::run(forge, ticket, request, reader, limits, client).await,
    };
    let refs = snapshots::read(forge, &repo).await.map_err(|fault| Stopped::fault(&fault, Rest::Unread))?;
    let mut verdicts = Verdicts::of(request.updates.clone(), request.capabilities.atomic);
    verdicts.refuse_by_rule(&repo.default_branch, &refs);
    if verdicts.none_left() {
        return Ok((verdicts.results(), Rest::Unread));
    }
    let key = incoming_key(forge);
    let incoming = match request.needs_pack() {
        true => {
            let dir = forge.layout().repo(repo.id);
            let taking = Taking { dir, key: &key, transport: ticket.transport, limits, client };
            Some(take_pack(forge, taking, reader, &mut verdicts).await?)
        }
        false => None,
    };
    if verdicts.none_left() {
        return Ok((verdicts.results(), Rest::Read));
    }
    failpoint::hit(failpoint::PUSH_CONNECTED);
    let work = Work {
        repo: repo.id,
        caller: ticket.caller,
        transport: ticket.transport.as_str(),
        key,
        incoming,
        verdicts,
        signed: None,
    };
    // From here on it must reach its end, whatever becomes of the client.
    let task = forge.tasks().spawn(commit::commit(forge.clone(), work));
    match client.waiting_for(task).await {
        Ok(Ok(committed)) => Ok((committed.verdicts.results(), Rest::Read)),
        Ok(Err(fault)) => Err(Stopped::fault(&fault, Rest::Read)),
        Err(error) => {
            let fault = Fault::Internal(format!("the push's task ended early: {error}"));
            Err(Stopped::fault(&fault, Rest::Read))
        }
    }
}

/// Where a pack is received, and how.
pub(super) struct Taking<'a> {
    /// The repository whose objects it builds on.
    pub dir: PathBuf,
    /// The area's key.
    pub key: &'a str,
    pub transport: Transport,
    pub limits: &'a ReceiveLimits,
    pub client: &'a Client,
}

/// Receives the pack into its own area and checks that every new tip is complete.
pub(super) async fn take_pack<R>(
    forge: &Forge,
    Taking { dir, key, transport, limits, client }: Taking<'_>,
    reader: &mut PacketReader<R>,
    verdicts: &mut Verdicts,
) -> Result<Incoming, Stopped>
where
    R: AsyncRead + Unpin + Send,
{
    let incoming = Incoming::create_beside(forge.git(), forge.layout(), dir, key)
        .await
        .map_err(|error| Stopped::fault(&error.into(), Rest::Unread))?;
    let (progress, mut said) = mpsc::channel(16);
    let quiet = client.capabilities.quiet || !client.capabilities.side_band_64k;
    // Over HTTP the answer waits for the request: proxies pass nothing more of a request on once its answer has begun.
    client.sends_keepalives(transport != Transport::Http);
    let input = InspectReader::new(&mut *reader, |piece: &[u8]| {
        if piece.is_empty() {
            client.sends_keepalives(true);
        }
    });
    let taking = incoming.receive(input, limits, (!quiet).then_some(progress));
    let taking = tokio::time::timeout(forge.settings().push_timeout, taking);
    let forwarding = async {
        while let Some(bytes) = said.recv().await {
            if client.may_speak() {
                client.send(report::sideband_progress(&bytes)).await;
            }
        }
        std::future::pending::<()>().await
    };
    let outcome = tokio::select! {
        outcome = client.waiting_for(taking) => outcome,
        () = forwarding => unreachable!("forwarding never ends by itself"),
    };
    client.sends_keepalives(true);
    let late =
        || Stopped { reason: "the pack took too long to arrive; push in several steps".into(), rest: Rest::Read };
    let outcome = outcome.map_err(|_| late())?.map_err(|error| stopped(error, Rest::Unread))?;
    metrics::counter!("abide_push_bytes_total").increment(outcome.bytes);
    failpoint::hit(failpoint::PUSH_PACK_RECEIVED);

    match client.waiting_for(incoming.check_connected(&verdicts.accepted())).await {
        Ok(()) => {}
        Err(ReceiveError::Tips(tips)) => {
            for tip in tips {
                verdicts.refuse(&tip.name, tip.reason);
            }
        }
        Err(error) => return Err(stopped(error, Rest::Read)),
    }
    Ok(incoming)
}

pub(super) fn stopped(error: ReceiveError, rest: Rest) -> Stopped {
    match error {
        ReceiveError::Git(error) => Stopped::fault(&error.into(), rest),
        error => Stopped { reason: error.to_string(), rest },
    }
}

/// The way back to the client.
pub(super) struct Client {
    out: mpsc::Sender<Bytes>,
    pub(super) capabilities: Capabilities,
    keepalives: AtomicBool,
}

impl Client {
    fn new(out: mpsc::Sender<Bytes>, capabilities: Capabilities) -> Self {
        Self { keepalives: AtomicBool::new(capabilities.side_band_64k), out, capabilities }
    }

    /// Says whether keep-alives may be sent just now. Without a side-band there is no way to.
    fn sends_keepalives(&self, now: bool) {
        self.keepalives.store(now && self.capabilities.side_band_64k, Ordering::Relaxed);
    }

    /// Whether anything may be said before the report.
    fn may_speak(&self) -> bool {
        self.keepalives.load(Ordering::Relaxed)
    }

    pub(super) async fn send(&self, bytes: Bytes) {
        // A client that is gone needs no answer; the outer select notices it.
        if !bytes.is_empty() {
            let _ = self.out.send(bytes).await;
        }
    }

    /// Waits for something that may take long, telling the client now and then that we are still here.
    pub(super) async fn waiting_for<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(KEEPALIVE_EVERY, &mut work).await {
                Ok(value) => return value,
                Err(_) if self.may_speak() => self.send(Bytes::from_static(KEEPALIVE)).await,
                Err(_) => {}
            }
        }
    }
}

/// What is to become of each update of a push, as far as it is known.
pub(crate) struct Verdicts {
    updates: Vec<RefUpdate>,
    refused: Vec<Option<String>>,
    atomic: bool,
    /// Why nothing at all is done, also where no update is asked for.
    whole: Option<String>,
}

impl Verdicts {
    pub(crate) fn of(updates: Vec<RefUpdate>, atomic: bool) -> Self {
        Self { refused: vec![None; updates.len()], updates, atomic, whole: None }
    }

    /// Judges what is still accepted against the refs as they are.
    pub(super) fn refuse_by_rule(&mut self, default_branch: &abide_core::RefName, refs: &Refs) {
        for (slot, verdict) in self.refused.iter_mut().zip(push::judge(&self.updates, default_branch, &At(refs))) {
            if let (None, Err(refusal)) = (&slot, verdict) {
                *slot = Some(refusal.to_string());
            }
        }
        self.all_or_nothing();
    }

    /// Refuses one ref.
    pub(super) fn refuse(&mut self, name: &abide_core::RefName, reason: &str) {
        for (slot, update) in self.refused.iter_mut().zip(&self.updates) {
            if slot.is_none() && update.name == *name {
                *slot = Some(reason.to_owned());
            }
        }
        self.all_or_nothing();
    }

    /// Refuses everything that is still accepted.
    pub(super) fn refuse_rest(&mut self, reason: &str) {
        for slot in self.refused.iter_mut().filter(|slot| slot.is_none()) {
            *slot = Some(reason.to_owned());
        }
    }

    /// Refuses everything, also where no update is asked for.
    pub(crate) fn refuse_all(&mut self, reason: &str) {
        self.refuse_rest(reason);
        self.whole = Some(reason.to_owned());
    }

    fn all_or_nothing(&mut self) {
        if self.atomic && self.refused.iter().any(Option::is_some) {
            self.refuse_rest("atomic push: another ref of it was refused");
        }
    }

    pub(super) fn none_left(&self) -> bool {
        self.refused.iter().all(Option::is_some)
    }

    /// The updates that are to be made.
    pub(super) fn accepted(&self) -> Vec<RefUpdate> {
        let open = self.updates.iter().zip(&self.refused).filter(|(_, refused)| refused.is_none());
        open.map(|(update, _)| update.clone()).collect()
    }

    /// Why the first of those that are not made is not.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.whole.as_deref().or_else(|| self.refused.iter().find_map(Option::as_deref))
    }

    pub(super) fn results(self) -> Vec<RefResult> {
        self.refused.into_iter().map(|refused| refused.map_or(RefResult::Ok, RefResult::Ng)).collect()
    }
}

/// A snapshot, in the form that the rule asks.
struct At<'a>(&'a Refs);

impl CurrentRefs for At<'_> {
    fn get(&self, name: &str) -> Option<Oid> {
        self.0.get(name.as_bytes()).map(|found| found.oid)
    }

    fn any_below(&self, name: &str) -> bool {
        self.0.prefixed(format!("{name}/").as_bytes()).next().is_some()
    }
}
