//! Downloads of a round: a series of REQs, each closed at its end.

use super::Lie;
use crate::{Event, Filter};
use std::fmt::Debug;

/// Novelty of an event in a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    First,
    Again,
}

/// Events that a download could not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    /// Ids that the relay listed and did not serve.
    pub missing: u64,
    /// Seconds with more events than the relay serves in one answer.
    pub seconds: u64,
}

/// A series of requests. One is open at a time; it ends with an EOSE, or it is cut off.
pub(super) trait Download: Debug + Send {
    /// The next request; `None` at the end.
    fn request(&mut self) -> Option<Filter>;

    /// An event of the open request. An error means that the request does not ask for it.
    fn on_event(&mut self, event: &Event) -> Result<Seen, Lie>;

    /// Whether the open request brought more events than it may.
    fn is_overfull(&self) -> bool;

    /// The open request ended with EOSE. An error means that it had to bring events and brought none.
    fn on_end(&mut self) -> Result<(), Lie>;

    /// The open request ended without EOSE: whether it brought a new event, so that asking again makes progress.
    fn on_cut(&mut self) -> bool;

    /// Gaps so far.
    fn gaps(&self) -> Gaps;

    /// Ids in memory.
    #[cfg(test)]
    fn held(&self) -> usize;
}
