//! Randomness for secrets and keys.

/// A source of unguessable bytes. Tests may use a predictable one.
pub trait Random: Send + Sync + 'static {
    /// Fills the whole buffer.
    fn fill(&self, buffer: &mut [u8]);
}
