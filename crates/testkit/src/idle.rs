//! Connections that a test keeps open between uses, because opening costs more than using.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Idle connections by their target. Meant for a `static`.
#[derive(Debug)]
pub struct Idle<K, T>(Mutex<BTreeMap<K, T>>);

impl<K: Ord, T> Idle<K, T> {
    /// An empty set.
    #[expect(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Takes the connection to this target, if there is one.
    ///
    /// # Panics
    /// If another thread panicked in here.
    pub fn take<Q: Ord + ?Sized>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.0.lock().expect("nobody panics with it").remove(key)
    }

    /// Returns a connection.
    ///
    /// # Panics
    /// If another thread panicked in here.
    pub fn put(&self, key: impl Into<K>, idle: T) {
        self.0.lock().expect("nobody panics with it").insert(key.into(), idle);
    }
}
