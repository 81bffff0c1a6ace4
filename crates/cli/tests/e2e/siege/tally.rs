//! Counts of an attack: tries that reached their target, tries that were refused, connections that are held.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted by the threads of one attack.
#[derive(Default)]
pub struct Tally {
    tried: AtomicU64,
    reached: AtomicU64,
    refused: AtomicU64,
    most: AtomicU64,
    words: Mutex<Option<String>>,
}

impl Tally {
    /// A try begins.
    pub fn tries(&self) {
        self.tried.fetch_add(1, Ordering::Relaxed);
    }

    /// A try got as far as what it attacks.
    pub fn reaches(&self) {
        self.reached.fetch_add(1, Ordering::Relaxed);
    }

    /// The server would not have it.
    pub fn is_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A try was judged: it got as far as what it attacks, or not. The first words that the server said are kept.
    pub fn is_told(&self, reached: bool, words: &str) {
        if reached {
            self.reaches()
        } else {
            self.is_refused()
        }
        self.words.lock().expect("nobody panics with it").get_or_insert_with(|| words.chars().take(100).collect());
    }

    /// So many connections are held at this moment.
    pub fn holds(&self, count: usize) {
        self.most.fetch_max(count as u64, Ordering::Relaxed);
    }

    /// How far the attack got: connections that were held at once, for one that holds, else tries that reached their aim.
    pub fn weight(&self, holding: bool) -> u64 {
        if holding { self.most.load(Ordering::Relaxed) } else { self.reached.load(Ordering::Relaxed) }
    }

    /// One line of a table.
    pub fn line(&self) -> String {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let words = self.words.lock().expect("nobody panics with it").clone().unwrap_or_default();
        format!(
            "{:>7} tries {:>7} reached {:>7} refused {:>4} held at once  {}",
            count(&self.tried),
            count(&self.reached),
            count(&self.refused),
            count(&self.most),
            words.replace(['\n', '\r', '\0'], " ")
        )
    }
}
