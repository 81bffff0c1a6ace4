//! BYTES: bare repositories on disk, git's wire formats, and the git binary.
//!
//! * [`layout`], [`bare`], [`maintain`]: where a repository is, how it begins, stays fast and goes. [`integrity`]: whether it
//!   has all that its refs need.
//! * [`runner`]: the only place that starts a git process; environment, limits and its end are decided there.
//!   [`slots`]: how many run at once, and for whom. [`ration`]: what the kernel lets one have. [`pace`]: slow clients.
//! * [`pktline`], [`receive`], [`report`], [`v2`], [`advertise`]: what travels. Parsers are sans-IO and take any bytes.
//! * [`snapshot`], [`reftx`]: all refs at one moment, and the one transaction that moves them.
//! * [`read`]: commits, directories, files and differences, for pages and the API.
//! * [`write`], [`copy`]: a first commit without a working tree, and a fork with objects of its own.
//! * [`upload`] serves a fetch, [`hint`] says something in its answer; [`incoming`] is where a push's objects wait until its refs may move.
//!
//! Not here: users, policy, SQL, HTTP, leases, and the order of a push's steps. Who may do what is decided in
//! `abide-core`; `abide-forge` calls these pieces in the right order under the right lease.

pub mod advertise;
pub mod bare;
mod child;
pub mod copy;
mod durable;
mod environment;
pub mod error;
pub mod hint;
pub mod incoming;
pub mod integrity;
pub mod layout;
pub mod locks;
pub mod maintain;
pub mod pace;
pub mod pktline;
mod probe;
mod pump;
pub mod ration;
pub mod read;
pub mod receive;
pub mod reftx;
pub mod report;
pub mod runner;
pub mod slots;
pub mod snapshot;
mod spool;
pub mod upload;
pub mod v2;
pub mod write;

pub use advertise::ProtocolVersion;
pub use error::GitError;
pub use gix::bstr;
pub use incoming::{Connected, Incoming, PackOutcome};
pub use layout::Layout;
pub use pktline::{Packet, PacketReader};
pub use probe::UploadCapabilities;
pub use pump::{Cutter, Pumped};
pub use read::{ReadError, Reader};
pub use receive::{Capabilities, PushRequest, ReceiveError, ReceiveLimits};
pub use reftx::{RefTxError, RefsMatch};
pub use report::{RefResult, Report};
pub use runner::{Git, GitLimits};
pub use slots::{Client, Place, Pool};
pub use snapshot::{Head, Ref, Snapshot};
