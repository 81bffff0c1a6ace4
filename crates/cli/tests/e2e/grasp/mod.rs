//! GRASP, with the real `git` and a nostr client over real sockets, on both engines. The names follow the lists of
//! scenarios that the specification starts from.

mod after_commit;
mod announcements;
mod attached;
mod deletions;
mod erased;
mod everywhere;
mod flood;
mod hostile;
pub mod integrity;
mod kept;
mod leaving;
mod life;
mod many;
mod mixed;
mod proposals;
mod raising;
mod reserved;
mod restarts;
pub mod setup;
mod states;
mod strangers;
mod suspended;
mod thread_events;
