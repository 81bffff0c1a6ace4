//! BYTES: bare repositories on disk, git's wire formats, and the git binary.
//!
//! * [`layout`], [`bare`], [`maintain`]: paths, creation, maintenance and removal of repositories. [`integrity`]:
//!   checks for missing objects.
//! * [`runner`]: the only slot that starts git processes; it decides environment, limits and termination. [`slots`]:
//!   concurrency limits per client. [`ration`]: kernel limits per process. [`pace`]: slow clients.
//! * [`pktline`], [`receive`], [`report`], [`v2`], [`advertise`]: wire formats. Parsers are sans-IO and accept any
//!   bytes.
//! * [`snapshot`], [`reftx`]: all refs at one moment, and the transaction that moves refs.
//! * [`read`]: commits, directories, files and diffs, for pages and the API.
//! * [`write`], [`copy`]: a first commit without a working tree, and self-contained copies for forks.
//! * [`fetch`] asks another server for exact objects, over an HTTP client that the caller brings.
//! * [`upload`] serves a fetch, [`hint`] inserts a message into its answer; [`incoming`] holds a push's objects until
//!   its refs may move.
//!
//! Not here: users, policy, SQL, HTTP, leases, and the order of a push's steps. `abide-core` decides permissions;
//! `abide-forge` calls these pieces in order under the right lease.

pub mod advertise;
pub mod bare;
mod child;
pub mod copy;
mod durable;
mod environment;
pub mod error;
pub mod fetch;
mod fetch_memory;
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
pub use slots::{Client, Pool, PoolSlot};
pub use snapshot::{Head, Ref, Snapshot};
