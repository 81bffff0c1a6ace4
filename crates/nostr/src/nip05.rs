//! Names for keys: the document at `/.well-known/nostr.json` (NIP-05).

use crate::PublicKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// The document: names of this domain and their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    names: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    relays: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// Adds a name with its key and the relays of that key.
    pub fn add(&mut self, name: &str, key: &PublicKey, relays: &[String]) {
        self.names.insert(name.to_owned(), key.to_hex());
        if !relays.is_empty() {
            self.relays.insert(key.to_hex(), relays.to_vec());
        }
    }
}

/// Whether a text is a valid name: `a-z0-9-_.`, as in NIP-05.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;
    use serde_json::json;

    #[test]
    fn the_document_has_keys_in_hexadecimal_and_relays_by_key() {
        let mut names = Names::default();
        names.add("ada", &key(1), &["wss://a.org".to_owned()]);
        names.add("bob", &key(2), &[]);
        let (ada, bob) = (key(1).to_hex(), key(2).to_hex());
        let expected = json!({"names": {"ada": ada, "bob": bob}, "relays": {ada: ["wss://a.org"]}});
        assert_eq!(serde_json::to_value(&names).unwrap(), expected);
        assert_eq!(serde_json::to_value(Names::default()).unwrap(), json!({"names": {}}));
    }

    #[test]
    fn names_are_plain() {
        assert!(["ada", "_", "a.b-c_9"].into_iter().all(is_name));
        assert!(!["", "Ada", "a b", "ü", "a@b", &"a".repeat(65)].into_iter().any(is_name));
    }
}
