//! Shared by several benchmarks: a private server of this binary, the real `git`, generated repositories, and how
//! much memory a process takes.

pub(super) mod bare;
pub(super) mod client;
pub(super) mod data;
pub(super) mod memory;
pub(super) mod process;
pub(super) mod scratch;
pub(super) mod server;
pub(super) mod site;
