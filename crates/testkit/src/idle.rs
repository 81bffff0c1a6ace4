//! What a test keeps open between two uses, because opening it costs more than using it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Open things that nobody is using, by where they lead. Meant for a `static`.
#[derive(Debug)]
pub struct Idle<K, T>(Mutex<BTreeMap<K, T>>);

impl<K: Ord, T> Idle<K, T> {
    /// Nothing is open.
    #[expect(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Takes the one that leads there, if there is one.
    ///
    /// # Panics
    /// If another thread panicked in here.
    pub fn take<Q: Ord + ?Sized>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.0.lock().expect("nobody panics with it").remove(key)
    }

    /// Gives one back.
    ///
    /// # Panics
    /// If another thread panicked in here.
    pub fn put(&self, key: impl Into<K>, idle: T) {
        self.0.lock().expect("nobody panics with it").insert(key.into(), idle);
    }
}
