//! Missing git data is fetched from other servers, and other relays are followed: real servers, each with its own data.

mod crash;
mod fetching;
mod follow;
mod hostile;
mod operator;
mod pace;
mod pair;
mod strange;
mod upstream;
