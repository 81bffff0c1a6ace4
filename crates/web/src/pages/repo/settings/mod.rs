//! A repository's settings.

pub(super) mod danger;
pub(super) mod general;
pub(super) mod people;
