//! Where secrets and keys get their randomness from.

/// A source of bytes that nobody can guess. Tests may bring a predictable one.
pub trait Random: Send + Sync + 'static {
    /// Fills the whole buffer.
    fn fill(&self, buffer: &mut [u8]);
}
