//! The client's part of a push: commands, capabilities and push options, up to the start of the pack.

use crate::GitError;
use crate::incoming::Flaw;
use crate::pktline::{Packet, PacketReadError, PacketReader, decode, peek_length};
use abide_core::refs::InvalidRefName;
use abide_core::{Oid, RefName, RefUpdate};
use bytes::BytesMut;
use gix::bstr::ByteSlice;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::timeout;

/// Limits of one push.
#[derive(Clone, Debug)]
pub struct ReceiveLimits {
    /// Total bytes of all commands.
    pub command_bytes: usize,
    /// Number of commands; also the number of `shallow` lines.
    pub commands: usize,
    /// Total bytes of all push options.
    pub option_bytes: usize,
    pub options: usize,
    /// Bytes of the pack.
    pub pack_bytes: u64,
    /// Unpacked bytes allowed for any pack.
    pub unpacked_bytes: u64,
    /// Additional unpacked bytes per byte of the pack.
    pub unpacked_ratio: u64,
    /// Bytes of a commit, tree or tag: every reader loads them whole into memory.
    pub structure_bytes: u64,
    /// Longest silence of the client while we wait for data.
    pub idle: Duration,
    /// Whether the client closes its stream after the pack (HTTP) or waits for the report (SSH).
    pub stream_ends: bool,
    /// Packs with fewer objects than this, and under 16 MiB unpacked, become loose objects; others stay packs.
    pub unpack_limit: u32,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self {
            command_bytes: 4 * 1024 * 1024,
            commands: 50_000,
            option_bytes: 64 * 1024,
            options: 256,
            pack_bytes: 4 * 1024 * 1024 * 1024,
            unpacked_bytes: 4 << 30,
            unpacked_ratio: 500,
            structure_bytes: 32 << 20,
            idle: Duration::from_secs(60),
            stream_ends: false,
            unpack_limit: 100,
        }
    }
}

/// Capabilities that the client chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub report_status: bool,
    /// Asks for the report format with options. We send the same text.
    pub report_status_v2: bool,
    pub side_band_64k: bool,
    /// Apply all refs or none.
    pub atomic: bool,
    /// Sends no progress.
    pub quiet: bool,
    pub push_options: bool,
    /// The client's user agent, shortened and printable.
    pub agent: Option<String>,
}

/// A push request without its pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRequest {
    /// Commands in the order received.
    pub updates: Vec<RefUpdate>,
    pub capabilities: Capabilities,
    /// Values of `git push -o …`.
    pub push_options: Vec<String>,
    /// Boundary commits of a shallow clone.
    pub shallow: Vec<Oid>,
}

impl PushRequest {
    /// Whether a pack follows: always, unless all commands delete refs.
    pub fn needs_pack(&self) -> bool {
        self.updates.iter().any(|update| !update.is_delete())
    }
}

/// A new tip that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedTip {
    pub name: RefName,
    /// Reason, as `git push` prints it.
    pub reason: &'static str,
}

/// Reason for refusing a push. Worded for the user who pushed.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The stream is not valid pkt-line, or ended.
    #[error(transparent)]
    Packet(#[from] PacketReadError),
    #[error("the connection ended before the push was complete")]
    Truncated,
    /// A command is not `<old> <new> <ref>`.
    #[error("invalid push command {0:?}; expected `<old id> <new id> <ref>`")]
    MalformedCommand(String),
    #[error("{name:?} is not a valid ref name: {rule}")]
    InvalidRefName {
        /// The name as sent, shortened and printable.
        name: String,
        rule: InvalidRefName,
    },
    #[error("a push may update at most {0} refs; push in several steps")]
    TooManyCommands(usize),
    #[error("the commands of a push may have at most {0} bytes; push in several steps")]
    CommandsTooLong(usize),
    /// Too many or too long push options, or one that is not a line of UTF-8 text.
    #[error("a push may have at most {count} push options of {bytes} bytes in total, each one line of UTF-8")]
    PushOptions { count: usize, bytes: usize },
    /// A signed push, which we do not offer.
    #[error("signed pushes are not supported; push without --signed")]
    PushCertificate,
    /// The client uses another object format than SHA-1.
    #[error("only SHA-1 repositories are supported, but the client uses {0:?}")]
    ObjectFormat(String),
    #[error("no data received for {} s; check the connection and push again", .0.as_secs())]
    Idle(Duration),
    /// No pack follows the commands, or one over the size limits.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// Unpacking exceeded the memory or CPU limit of one push.
    #[error("unpacking this push needs more {0} than allowed; push fewer or smaller objects at a time")]
    TooDear(&'static str),
    /// git refused the pack or one of its objects.
    #[error("the pack was refused: {0}")]
    BadPack(String),
    /// An internal failure.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A push request that could not be parsed.
#[derive(Debug)]
pub struct BadRequest {
    pub error: ReceiveError,
    /// Capabilities read so far. They decide how the error can be sent.
    pub client: Capabilities,
}

/// Waits until the commands of a push are buffered, or `most` bytes, or the end of the stream. Consumes nothing.
pub async fn begin<R: AsyncRead + Unpin>(reader: &mut PacketReader<R>, most: usize) -> std::io::Result<()> {
    let mut at = 0;
    loop {
        let buffered = reader.buffered();
        while let Some(rest) = buffered.get(at..) {
            match peek_length(rest) {
                Ok(Some(0)) | Err(_) => return Ok(()),
                Ok(Some(length)) => at += length.max(4),
                Ok(None) => break,
            }
        }
        if buffered.len() >= most || reader.fill().await? == 0 {
            return Ok(());
        }
    }
}

/// Capabilities of the client, if its first command has arrived. Consumes nothing.
pub fn announced(buffered: &[u8]) -> Option<Capabilities> {
    let length = peek_length(buffered).ok().flatten().filter(|length| *length > 4)?;
    let (_, list) = buffered.get(4..length)?.split_once_str(b"\0")?;
    let mut client = Capabilities::default();
    parse_capabilities(list, &mut client).ok()?;
    Some(client)
}

/// Reads a push up to its pack. `None` if the client sends only a flush (git's probe before a large push) or nothing.
pub async fn read_request<R: AsyncRead + Unpin>(
    reader: &mut PacketReader<R>,
    limits: &ReceiveLimits,
) -> Result<Option<PushRequest>, BadRequest> {
    let mut parser = Parser::new(limits);
    match read_all(reader, limits, &mut parser).await {
        Ok(()) => Ok(parser.finish()),
        Err(error) => Err(BadRequest { error, client: parser.request.capabilities }),
    }
}

async fn read_all<R: AsyncRead + Unpin>(
    reader: &mut PacketReader<R>,
    limits: &ReceiveLimits,
    parser: &mut Parser<'_>,
) -> Result<(), ReceiveError> {
    loop {
        let packet = timeout(limits.idle, reader.next()).await.map_err(|_| ReceiveError::Idle(limits.idle))??;
        match packet {
            None if parser.untouched() => return Ok(()),
            None => return Err(ReceiveError::Truncated),
            Some(packet) if parser.feed(&packet)? => return Ok(()),
            Some(_) => {}
        }
    }
}

/// Parses a push from memory; also returns the number of bytes consumed. For fuzzing and tests.
pub fn parse_request(bytes: &[u8], limits: &ReceiveLimits) -> Result<(Option<PushRequest>, usize), ReceiveError> {
    let mut buffer = BytesMut::from(bytes);
    let mut parser = Parser::new(limits);
    while let Some(packet) = decode(&mut buffer).map_err(PacketReadError::from)? {
        if parser.feed(&packet)? {
            return Ok((parser.finish(), bytes.len() - buffer.len()));
        }
    }
    Err(ReceiveError::Truncated)
}

enum Section {
    Commands,
    Options,
}

struct Parser<'a> {
    limits: &'a ReceiveLimits,
    section: Section,
    command_bytes: usize,
    option_bytes: usize,
    request: PushRequest,
}

impl<'a> Parser<'a> {
    fn new(limits: &'a ReceiveLimits) -> Self {
        let request = PushRequest::default();
        Self { limits, section: Section::Commands, command_bytes: 0, option_bytes: 0, request }
    }

    fn untouched(&self) -> bool {
        self.command_bytes == 0
    }

    /// The request; `None` if it has no commands.
    fn finish(self) -> Option<PushRequest> {
        (!self.request.updates.is_empty()).then_some(self.request)
    }

    /// Parses one packet; `true` if it was the last.
    fn feed(&mut self, packet: &Packet) -> Result<bool, ReceiveError> {
        match (packet, &self.section) {
            (Packet::Data(data), Section::Commands) => self.command_line(data).map(|()| false),
            (Packet::Data(data), Section::Options) => self.option(data).map(|()| false),
            (Packet::Flush, Section::Commands) if self.request.capabilities.push_options => {
                self.section = Section::Options;
                Ok(false)
            }
            (Packet::Flush, _) => Ok(true),
            (Packet::Delim | Packet::ResponseEnd, _) => {
                Err(ReceiveError::MalformedCommand("a version 2 delimiter".to_owned()))
            }
        }
    }

    fn command_line(&mut self, data: &[u8]) -> Result<(), ReceiveError> {
        self.command_bytes += data.len() + 4;
        if self.command_bytes > self.limits.command_bytes {
            return Err(ReceiveError::CommandsTooLong(self.limits.command_bytes));
        }
        let (line, capabilities) = match data.split_once_str(b"\0") {
            Some((line, capabilities)) => (line, Some(capabilities)),
            None => (data, None),
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line == b"push-cert" {
            return Err(ReceiveError::PushCertificate);
        }
        if let Some(hex) = line.strip_prefix(b"shallow ") {
            let oid = Oid::from_hex(hex).map_err(|_| ReceiveError::MalformedCommand(printable(line)))?;
            self.request.shallow.push(oid);
        } else {
            // Only the first command carries capabilities.
            if let (Some(list), true) = (capabilities, self.request.updates.is_empty()) {
                parse_capabilities(list, &mut self.request.capabilities)?;
            }
            self.request.updates.push(command(line)?);
        }
        if self.request.updates.len().max(self.request.shallow.len()) > self.limits.commands {
            return Err(ReceiveError::TooManyCommands(self.limits.commands));
        }
        Ok(())
    }

    fn option(&mut self, data: &[u8]) -> Result<(), ReceiveError> {
        let limits = ReceiveError::PushOptions { count: self.limits.options, bytes: self.limits.option_bytes };
        let line = data.strip_suffix(b"\n").unwrap_or(data);
        self.option_bytes += line.len();
        match line.to_str() {
            Ok(text)
                if self.option_bytes <= self.limits.option_bytes
                    && self.request.push_options.len() < self.limits.options
                    && !text.contains(['\n', '\0']) =>
            {
                self.request.push_options.push(text.to_owned());
                Ok(())
            }
            _ => Err(limits),
        }
    }
}

fn command(line: &[u8]) -> Result<RefUpdate, ReceiveError> {
    let malformed = || ReceiveError::MalformedCommand(printable(line));
    let (old, rest) = line.split_at_checked(40).ok_or_else(malformed)?;
    let (new, name) = rest.strip_prefix(b" ").and_then(|rest| rest.split_at_checked(40)).ok_or_else(malformed)?;
    let name = name.strip_prefix(b" ").ok_or_else(malformed)?;
    Ok(RefUpdate {
        old: Oid::from_hex(old).map_err(|_| malformed())?,
        new: Oid::from_hex(new).map_err(|_| malformed())?,
        name: RefName::from_bytes(name).map_err(|rule| ReceiveError::InvalidRefName { name: printable(name), rule })?,
    })
}

/// Parses the whole list even if one word is refused. Ignores unknown words, as git does: later clients send more.
fn parse_capabilities(list: &[u8], capabilities: &mut Capabilities) -> Result<(), ReceiveError> {
    let mut refused = None;
    for word in list.fields() {
        let (key, value) = word.split_once_str(b"=").unwrap_or((word, b""));
        match key {
            b"report-status" => capabilities.report_status = true,
            b"report-status-v2" => capabilities.report_status_v2 = true,
            b"side-band-64k" => capabilities.side_band_64k = true,
            b"atomic" => capabilities.atomic = true,
            b"quiet" => capabilities.quiet = true,
            b"push-options" => capabilities.push_options = true,
            b"push-cert" => refused = Some(ReceiveError::PushCertificate),
            b"object-format" if value != b"sha1" => refused = Some(ReceiveError::ObjectFormat(printable(value))),
            b"agent" => capabilities.agent = Some(printable(value)),
            _ => (),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Bytes from outside made safe for a message: shortened, without control characters.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
