//! Missing git data is fetched from other servers: two real servers, each with its own data.

mod crash;
mod fetching;
mod hostile;
mod operator;
mod pace;
mod pair;
mod upstream;
