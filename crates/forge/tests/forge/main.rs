//! Use cases on both engines, where a scenario over the network could not arrange or see enough.

mod attention;
mod consumers;
mod deleted_text;
mod forks;
mod issues;
mod jobs;
mod lifecycle;
mod log;
mod notify;
mod people;
mod reconcile;
mod rig;
mod webhooks;
