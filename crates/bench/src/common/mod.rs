//! Shared parts of the benchmarks: a private server of this binary, the real `git`, generated repositories, and the
//! memory of a process.

pub(crate) mod bare;
pub(crate) mod client;
pub(crate) mod data;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod scratch;
pub(crate) mod server;
pub(crate) mod site;
