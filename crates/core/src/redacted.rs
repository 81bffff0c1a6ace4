//! Secret values that no log and no error shows.

use std::fmt;

/// A password, a key, or a hash of one: `Debug` shows `***`, and only [`Redacted::expose`] and [`Redacted::into_inner`]
/// give the value. `==` takes time that depends on the values, so it is for values that a client does not choose:
/// passwords are compared by argon2, tokens by a lookup of their hash.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The secret itself.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The secret itself, owned.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> From<T> for Redacted<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl From<&str> for Redacted<String> {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_given_out_but_not_shown() {
        let secret = Redacted::<String>::from("hunter2");
        assert_eq!(format!("{secret:?} {:?} {:#?}", Some(&secret), [&secret]), "*** Some(***) [\n    ***,\n]");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(secret, Redacted::new("hunter2".to_owned()));
        assert_eq!(secret.into_inner(), "hunter2");
    }
}
