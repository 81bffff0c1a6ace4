//! The client's side of a push: commands and pack in, keep-alives and report out.

use super::apply::{self, Work};
use super::authority::{ByRole, Input, Reader, SignedPush, SignedPushes};
use super::{PushAdmission, Target, Verdicts, incoming_key};
use crate::disk::{self, Writer};
use crate::error::REVOKED;
use crate::git::Transport;
use crate::git::snapshots;
use crate::{Caller, Fault, Forge};
use abide_core::failpoint;
use abide_git::pace::Paced;
use abide_git::receive::{self, BadRequest, ReceiveError};
use abide_git::report::{self, KEEPALIVE, RefResult, Report};
use abide_git::{Capabilities, Connected, GitError, Incoming, PacketReader, PoolSlot, PushRequest, ReceiveLimits};
use abide_macros::boxed;
use bytes::Bytes;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::io::InspectReader;

/// Bytes read before a push takes a slot: the commands of nearly all pushes.
const FIRST_BYTES: usize = 64 * 1024;

/// Most bytes of commands without an account: more refs than an event can sign.
const STRANGERS_COMMANDS: usize = 1 << 20;

/// Largest commit, tree or tag without an account: a directory of about 200,000 files. git holds all directories of a path
/// at once when it walks them for a fetch.
const STRANGERS_STRUCTURE: u64 = 8 << 20;

/// Most warnings per push.
const MOST_WARNINGS: usize = 20;

/// Interval for checking disk space while a pack arrives.
const ROOM_EVERY: Duration = Duration::from_secs(1);

/// Time that a client with a revoked credential may continue to send, so that it can read the report.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Clients give up after 15 seconds of silence.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// Receives a push and sends the answer to `out`, which is closed at the end.
///
/// If the client disconnects before the pack is complete, everything it sent is discarded.
#[boxed]
pub async fn receive(forge: &Forge, admission: PushAdmission, input: Input<'_>, out: mpsc::Sender<Bytes>) {
    let (gone, client) = (out.clone(), admission.caller.client());
    let mut reader = PacketReader::new(Paced::new(input, forge.patience()));
    let rest = tokio::select! {
        () = gone.closed() => {
            metrics::counter!("abide_pushes_total", "end" => "client_gone").increment(1);
            Rest::Read
        }
        rest = converse(forge, admission, &mut reader, out) => rest,
    };
    let most = match rest {
        Rest::Read => return,
        Rest::Unread => Duration::MAX,
        Rest::Cut => LAST_WORDS,
    };
    // After the report, not before: over SSH some clients keep their side open until they have read it.
    tokio::select! {
        () = gone.closed() => {}
        _ = tokio::time::timeout(most, crate::git::drain(forge, client, &mut reader)) => {}
    }
}

/// Answers a push that the policy refuses, in the form that the client reads at this point: a report for each ref. The
/// refusal may be newer than the advertisement, so the client may have started to push.
#[boxed]
pub async fn refuse(forge: &Forge, client: abide_git::Client, reason: &str, input: Input<'_>) -> Bytes {
    let mut reader = PacketReader::new(Paced::new(input, forge.patience()));
    let limits = ReceiveLimits { command_bytes: FIRST_BYTES, ..ReceiveLimits::default() };
    let answer = match receive::read_request(&mut reader, &limits).await {
        Ok(None) => return Bytes::new(),
        Ok(Some(request)) => {
            let results = request.updates.iter().map(|_| RefResult::Ng(reason.to_owned())).collect();
            let refs = zip(&request, results);
            Report { unpack: Ok(()), refs }.encode(&request.capabilities)
        }
        Err(BadRequest { client, .. }) => report::refused_request(&client, reason),
    };
    crate::git::drain(forge, client, &mut reader).await;
    answer
}

/// Whether a client may still be sending when it has its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// All of its input was read.
    Read,
    /// The pack was not read, or not to its end.
    Unread,
    /// The pack was not read to its end, and the client must be disconnected.
    Cut,
}

async fn converse(forge: &Forge, admission: PushAdmission, reader: &mut Reader<'_>, out: mpsc::Sender<Bytes>) -> Rest {
    let mut limits = limits(forge, &admission);
    let standing = admission.caller.standing.clone();
    let mut said = Capabilities::default();
    let opening = tokio::select! {
        opening = open(forge, &admission, reader, &mut limits, &mut said) => {
            opening.map_err(|error| (error.to_string(), Rest::Read))
        }
        () = standing.lost(forge) => Err((REVOKED.to_owned(), Rest::Cut)),
    };
    let Opening { slot, request } = match opening {
        Ok(opening) => opening,
        Err((reason, rest)) => {
            let _ = out.send(refusal(reader.buffered(), said, &reason)).await;
            return rest;
        }
    };
    let request = match request {
        Ok(Some(request)) => request,
        // git's probe before a large push: it only checks access.
        Ok(None) => return Rest::Read,
        Err(BadRequest { error, client }) => {
            let _ = out.send(report::refused_request(&client, &error.to_string())).await;
            return Rest::Unread;
        }
    };
    let client = Client::new(out, request.capabilities.clone());
    // Over SSH the hint was sent at once, on standard error.
    let hint = admission.hint.clone().filter(|_| admission.transport == Transport::Http);
    let ran = match &slot {
        Ok(_) => run(forge, admission, &request, reader, &limits, &client).await,
        Err(busy) => Err(Stopped { reason: busy.to_string(), rest: Rest::Unread }),
    };
    let (report, rest) = match ran {
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
    // Without a pack, the client has sent everything.
    if request.needs_pack() { rest } else { Rest::Read }
}

/// The answer to a push whose commands were not taken, in the form that the client reads: a report for each ref if all of
/// them are here. `said` is what the client can do, if the first command was taken already.
fn refusal(buffered: &[u8], said: Capabilities, reason: &str) -> Bytes {
    let Some(client) = receive::announced(buffered) else { return report::refused_request(&said, reason) };
    let limits = ReceiveLimits { command_bytes: FIRST_BYTES, ..ReceiveLimits::default() };
    match receive::parse_request(buffered, &limits) {
        Ok((Some(request), _)) => {
            let results = request.updates.iter().map(|_| RefResult::Ng(reason.to_owned())).collect();
            Report { unpack: Err(reason.to_owned()), refs: zip(&request, results) }.encode(&request.capabilities)
        }
        _ => report::refused_request(&client, reason),
    }
}

/// The start of a push.
struct Opening {
    /// Its slot, or the reason why there is none.
    slot: Result<PoolSlot, GitError>,
    request: Result<Option<PushRequest>, BadRequest>,
}

/// Takes a slot for a push and reads its commands.
async fn open(
    forge: &Forge,
    admission: &PushAdmission,
    reader: &mut Reader<'_>,
    limits: &mut ReceiveLimits,
    said: &mut Capabilities,
) -> std::io::Result<Opening> {
    // A client that has sent little so far holds no slot.
    receive::begin(reader, FIRST_BYTES).await?;
    *said = receive::announced(reader.buffered()).unwrap_or_default();
    let slot = forge.git().receive_slot(admission.caller.client()).await;
    if slot.is_err() {
        limits.command_bytes = FIRST_BYTES;
    }
    let request = receive::read_request(reader, limits).await;
    Ok(Opening { slot, request })
}

fn zip(request: &PushRequest, results: Vec<RefResult>) -> Vec<(abide_core::RefName, RefResult)> {
    request.updates.iter().map(|update| update.name.clone()).zip(results).collect()
}

fn limits(forge: &Forge, admission: &PushAdmission) -> ReceiveLimits {
    let settings = forge.settings();
    let defaults = ReceiveLimits::default();
    let (command_bytes, unpacked_bytes, structure_bytes) = match admission.caller.client().is_stranger() {
        true => (STRANGERS_COMMANDS, settings.git.stranger_unpacked, STRANGERS_STRUCTURE),
        false => (defaults.command_bytes, settings.git.unpacked, defaults.structure_bytes),
    };
    ReceiveLimits {
        command_bytes,
        commands: settings.git.max_push_refs,
        pack_bytes: settings.git.max_push,
        unpacked_bytes,
        structure_bytes,
        unpacked_ratio: settings.git.unpacked_ratio,
        stream_ends: admission.transport == Transport::Http,
        idle: settings.git.idle_timeout,
        unpack_limit: settings.git.unpack_limit,
        ..defaults
    }
}

/// The whole push failed, before any ref was judged separately.
pub(crate) struct Stopped {
    pub reason: String,
    pub rest: Rest,
}

impl Stopped {
    /// The account was suspended, or its credential revoked.
    pub(crate) fn revoked() -> Self {
        Self { reason: REVOKED.to_owned(), rest: Rest::Cut }
    }

    /// A fault of ours while refs were written.
    pub(crate) const UNCERTAIN: &str = "the server failed; fetch to see whether this was changed, then try again";

    /// A fault of ours before the first ref was touched.
    pub(crate) fn fault(fault: &Fault, rest: Rest) -> Self {
        Self { reason: Self::reason_for(fault, "the server failed; nothing was changed, try again later"), rest }
    }

    /// Logs an internal failure in full and reports it to the client in short.
    pub(crate) fn reason_for(fault: &Fault, short: &str) -> String {
        match fault {
            Fault::DiskFull { .. } | Fault::Git(abide_git::GitError::Busy { .. }) => fault.to_string(),
            _ => {
                tracing::error!(error = %fault, "a push failed");
                short.to_owned()
            }
        }
    }
}

async fn run(
    forge: &Forge,
    admission: PushAdmission,
    request: &PushRequest,
    reader: &mut Reader<'_>,
    limits: &ReceiveLimits,
    client: &Client,
) -> Result<(Vec<RefResult>, Rest), Stopped> {
    disk::ensure_room(forge, Writer::of(&admission.caller)).map_err(|fault| Stopped::fault(&fault, Rest::Unread))?;
    let PushAdmission { target, caller, transport, .. } = admission;
    let repo = match target {
        Target::Account(repo) => repo,
        Target::Signed { coordinate, id, repo } => {
            let (coordinate, repo, caller) = (&coordinate, repo.as_ref(), &caller);
            let push = SignedPush { coordinate, id, repo, caller, transport, request, limits, client };
            return forge.part::<Arc<dyn SignedPushes>>().receive(forge, push, reader).await;
        }
    };
    let refs = snapshots::read(forge, &repo).await.map_err(|fault| Stopped::fault(&fault, Rest::Unread))?;
    let mut verdicts = Verdicts::of(request.updates.clone(), request.capabilities.atomic);
    verdicts.refuse_by_rule(&repo.default_branch, &refs);
    if verdicts.none_left() {
        client.warn(&verdicts).await;
        return Ok((verdicts.results(), Rest::Unread));
    }
    let key = incoming_key(forge);
    let objects = match request.needs_pack() {
        true => {
            let dir = forge.layout().repo(repo.id);
            let taking = Taking { dir, key: &key, caller: &caller, transport, limits, client };
            Some(take_pack(forge, taking, reader, &mut verdicts).await?)
        }
        false => None,
    };
    if verdicts.none_left() {
        return Ok((verdicts.results(), Rest::Read));
    }
    failpoint::hit(failpoint::PUSH_CONNECTED);
    let work = Work {
        repo,
        caller,
        transport: transport.as_str(),
        key,
        objects,
        verdicts,
        authority: Arc::new(ByRole),
        reserved: None,
    };
    // From here on the push must run to its end, even if the client disconnects.
    let task = forge.tasks().spawn(apply::commit(forge.clone(), work));
    match client.waiting_for(task).await {
        Ok(Ok(committed)) => {
            client.warn(&committed.verdicts).await;
            Ok((committed.verdicts.results(), Rest::Read))
        }
        Ok(Err(fault)) => Err(Stopped { reason: Stopped::reason_for(&fault, Stopped::UNCERTAIN), rest: Rest::Read }),
        Err(error) => {
            let fault = Fault::Internal(format!("the push's task ended early: {error}"));
            Err(Stopped { reason: Stopped::reason_for(&fault, Stopped::UNCERTAIN), rest: Rest::Read })
        }
    }
}

/// Target and limits of receiving a pack.
pub(crate) struct Taking<'a> {
    /// The repository whose objects the pack builds on.
    pub dir: PathBuf,
    /// Key of the incoming area.
    pub key: &'a str,
    pub caller: &'a Caller,
    pub transport: Transport,
    pub limits: &'a ReceiveLimits,
    pub client: &'a Client,
}

/// Receives the pack into its own area and proves that every new tip is complete; refuses the others.
pub(crate) async fn take_pack(
    forge: &Forge,
    Taking { dir, key, caller, transport, limits, client }: Taking<'_>,
    reader: &mut Reader<'_>,
    verdicts: &mut Verdicts,
) -> Result<Connected, Stopped> {
    let incoming = Incoming::create_beside(forge.git(), forge.layout(), dir, key)
        .await
        .map_err(|error| Stopped::fault(&error.into(), Rest::Unread))?
        .of(caller.client());
    let (progress, mut said) = mpsc::channel(16);
    let quiet = client.capabilities.quiet || !client.capabilities.side_band_64k;
    // Over HTTP the response waits for the request: proxies stop forwarding a request once its response has begun.
    client.sends_keepalives(transport != Transport::Http);
    let input = InspectReader::new(&mut *reader, |piece: &[u8]| {
        if piece.is_empty() {
            client.sends_keepalives(true);
        }
    });
    let taking = incoming.receive(input, limits, (!quiet).then_some(progress));
    let taking = tokio::time::timeout(forge.settings().git.push_timeout, taking);
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
        full = out_of_room(forge, Writer::of(caller)) => return Err(Stopped::fault(&full, Rest::Unread)),
        () = caller.standing.lost(forge) => return Err(Stopped::revoked()),
    };
    client.sends_keepalives(true);
    let late =
        || Stopped { reason: "the pack took too long to arrive; push in several steps".into(), rest: Rest::Read };
    let outcome = outcome.map_err(|_| late())?.map_err(|error| stopped(error, Rest::Unread))?;
    metrics::counter!("abide_push_bytes_total").increment(outcome.bytes);
    failpoint::hit(failpoint::PUSH_PACK_RECEIVED);

    let accepted = verdicts.accepted();
    let connected = tokio::select! {
        connected = client.waiting_for(incoming.connect(&accepted)) => connected,
        () = caller.standing.lost(forge) => return Err(Stopped::revoked()),
    };
    let (connected, refused) = connected.map_err(|error| match error {
        GitError::UsedUp { of, .. } => stopped(ReceiveError::TooDear(of), Rest::Read),
        error => Stopped::fault(&error.into(), Rest::Read),
    })?;
    for tip in refused {
        verdicts.refuse(&tip.name, tip.reason);
    }
    Ok(connected)
}

/// Returns when the disk has too little space left.
pub(crate) async fn out_of_room(forge: &Forge, writer: Writer) -> Fault {
    loop {
        tokio::time::sleep(ROOM_EVERY).await;
        if let Err(full) = disk::ensure_room(forge, writer) {
            return full;
        }
    }
}

pub(crate) fn stopped(error: ReceiveError, rest: Rest) -> Stopped {
    match error {
        ReceiveError::Git(error) => Stopped::fault(&error.into(), rest),
        error => Stopped { reason: error.to_string(), rest },
    }
}

/// Output to the client.
pub(crate) struct Client {
    out: mpsc::Sender<Bytes>,
    pub(crate) capabilities: Capabilities,
    keepalives: AtomicBool,
}

impl Client {
    fn new(out: mpsc::Sender<Bytes>, capabilities: Capabilities) -> Self {
        Self { keepalives: AtomicBool::new(capabilities.side_band_64k), out, capabilities }
    }

    /// Sets whether keep-alives may be sent now. They need a side-band.
    fn sends_keepalives(&self, now: bool) {
        self.keepalives.store(now && self.capabilities.side_band_64k, Ordering::Relaxed);
    }

    /// Whether anything may be sent before the report.
    fn may_speak(&self) -> bool {
        self.keepalives.load(Ordering::Relaxed)
    }

    pub(crate) async fn send(&self, bytes: Bytes) {
        // If the client is gone, the outer select notices it.
        if !bytes.is_empty() {
            let _ = self.out.send(bytes).await;
        }
    }

    /// Warns about refs to delete that were already gone.
    pub(crate) async fn warn(&self, verdicts: &Verdicts) {
        for warning in verdicts.warnings().iter().filter(|_| self.capabilities.side_band_64k).take(MOST_WARNINGS) {
            self.send(report::sideband_message(warning)).await;
        }
    }

    /// Waits for slow work, sending keep-alives to the client.
    pub(crate) async fn waiting_for<T>(&self, work: impl Future<Output = T>) -> T {
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        "0000000000000000000000000000000000000000 1111111111111111111111111111111111111111 refs/heads/a";

    fn commands(capabilities: &str) -> Vec<u8> {
        let line = format!("{FIRST}\0{capabilities}");
        format!("{:04x}{line}0000", line.len() + 4).into_bytes()
    }

    #[test]
    fn a_push_that_ends_early_is_refused_in_the_form_that_the_client_reads() {
        let reply = |buffered: &[u8], said: &Capabilities| {
            String::from_utf8(refusal(buffered, said.clone(), "no more").to_vec()).unwrap()
        };
        let none = Capabilities::default();
        let banded = commands("report-status side-band-64k");
        // Each ref, in the band for data.
        let whole = reply(&banded, &none);
        assert!(whole.contains("\u{1}") && whole.contains("ng refs/heads/a no more"), "{whole}");
        assert!(reply(&commands("report-status"), &none).contains("ng refs/heads/a no more"));
        // The band for errors, where not all commands are here.
        let part = reply(&banded[..banded.len() - 4], &none);
        assert!(part.contains("\u{3}no more") && !part.contains("ERR"), "{part}");
        let said = Capabilities { side_band_64k: true, ..Capabilities::default() };
        assert!(reply(b"0032rest", &said).contains("\u{3}no more"), "the first command was taken before");
        // A client that has said nothing waits for anything.
        assert_eq!(reply(b"", &none), "000fERR no more");
        assert_eq!(reply(&banded[..30], &none), "000fERR no more");
    }
}
