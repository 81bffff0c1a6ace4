//! The whole thing, as its users meet it: a real `abide serve` process, the real `git` and `ssh`, real sockets, on both
//! engines. Each module is a part of the specification that can be read as such.

mod api;
mod audit;
mod beside;
mod browse;
mod browser;
mod cli;
mod cli_day_one;
mod cli_repo;
mod clients;
mod crash;
mod flip;
mod front;
mod full_disk;
mod git;
mod grasp;
mod ngit;
mod nodes;
mod operations;
mod packaging;
mod pages;
mod query;
mod relay;
mod security;
mod siege;
mod signed;
mod support;
mod sync;
mod webhooks;
