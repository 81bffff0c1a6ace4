//! Parses filters from JSON, within limits.

use super::{Filter, TagLetter};
use crate::{EventId, PublicKey, RelayLimits, hexadecimal};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Reason why an object is not a filter. The text starts with the NIP-01 prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("invalid: a filter must be an object")]
    NotAnObject,
    /// An unknown field. Ignoring it would answer a different query.
    #[error("unsupported: unknown filter field {0:?}")]
    UnknownField(String),
    #[error("invalid: the filter field {0:?} must be {1}")]
    Value(String, &'static str),
    #[error("invalid: a filter may have at most {0} values")]
    TooManyValues(usize),
    /// The database compares these lists with every event that the first condition finds.
    #[error(
        "invalid: a filter may have at most {0} tag values beside its longest tag list, or beside ids; ask with several \
         filters"
    )]
    TooManyTagValues(usize),
}

/// Tag values that are compared with every event: all lists but the longest, or all if the filter has ids.
const COMPARED_VALUES: usize = 200;

impl Filter {
    /// Parses a filter. `limit` is capped at the relay's own limit, which is also the default.
    pub fn parse(value: &Value, limits: &RelayLimits) -> Result<Self, FilterError> {
        let object = value.as_object().ok_or(FilterError::NotAnObject)?;
        let values: usize = object.values().filter_map(Value::as_array).map(Vec::len).sum();
        if values > limits.filter_values {
            return Err(FilterError::TooManyValues(limits.filter_values));
        }
        let mut filter = Self { limit: limits.filter_limit, ..Self::default() };
        for (field, value) in object {
            filter.set(field, value, limits)?;
        }
        let (all, longest) = filter
            .tags
            .values()
            .map(BTreeSet::len)
            .fold((0, 0), |(all, longest), length| (all + length, longest.max(length)));
        if (if filter.ids.is_some() { all } else { all - longest }) > COMPARED_VALUES {
            return Err(FilterError::TooManyTagValues(COMPARED_VALUES));
        }
        Ok(filter)
    }

    fn set(&mut self, field: &str, value: &Value, limits: &RelayLimits) -> Result<(), FilterError> {
        let wrong = |rule| FilterError::Value(shortened(field), rule);
        match field {
            "ids" => {
                let id = |text: &str| hexadecimal::decode(text).map(EventId::from_byte_array);
                self.ids = Some(list(value, id).ok_or_else(|| wrong("a list of event ids in lowercase hexadecimal"))?);
            }
            "authors" => {
                let key = |text: &str| hexadecimal::decode(text).map(PublicKey::from_byte_array);
                self.authors =
                    Some(list(value, key).ok_or_else(|| wrong("a list of public keys in lowercase hexadecimal"))?);
            }
            "kinds" => {
                let kinds = value.as_array().and_then(|kinds| kinds.iter().map(kind).collect());
                self.kinds = Some(kinds.ok_or_else(|| wrong("a list of numbers from 0 to 65535"))?);
            }
            "since" => self.since = Some(time(value).ok_or_else(|| wrong("a number of seconds"))?),
            "until" => self.until = Some(time(value).ok_or_else(|| wrong("a number of seconds"))?),
            "limit" => {
                let limit = value.as_u64().ok_or_else(|| wrong("a number of events"))?;
                self.limit = usize::try_from(limit).unwrap_or(usize::MAX).min(limits.filter_limit);
            }
            _ => {
                let letter = field.strip_prefix('#').and_then(TagLetter::new);
                let letter = letter.ok_or_else(|| FilterError::UnknownField(shortened(field)))?;
                let wanted = list(value, |text| Some(text.to_owned())).ok_or_else(|| wrong("a list of strings"))?;
                self.tags.insert(letter, wanted);
            }
        }
        Ok(())
    }

    /// The filter as JSON; it parses back to the same filter under the same limits.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let texts = |list: &mut dyn Iterator<Item = String>| Value::Array(list.map(Value::String).collect());
        if let Some(ids) = &self.ids {
            object.insert("ids".into(), texts(&mut ids.iter().map(EventId::to_hex)));
        }
        if let Some(authors) = &self.authors {
            object.insert("authors".into(), texts(&mut authors.iter().map(PublicKey::to_hex)));
        }
        if let Some(kinds) = &self.kinds {
            object.insert("kinds".into(), kinds.iter().copied().collect());
        }
        for (letter, wanted) in &self.tags {
            object.insert(format!("#{}", letter.as_char()), texts(&mut wanted.iter().cloned()));
        }
        let times = [("since", self.since), ("until", self.until)];
        object.extend(times.into_iter().filter_map(|(name, at)| Some((name.to_owned(), at?.into()))));
        object.insert("limit".into(), self.limit.into());
        Value::Object(object)
    }
}

fn list<T: Ord>(value: &Value, read: impl Fn(&str) -> Option<T>) -> Option<BTreeSet<T>> {
    value.as_array()?.iter().map(|entry| read(entry.as_str()?)).collect()
}

fn kind(value: &Value) -> Option<u16> {
    u16::try_from(value.as_u64()?).ok()
}

/// Seconds. Negative times become zero; times beyond any event become the maximum.
fn time(value: &Value) -> Option<u64> {
    match value.as_u64() {
        Some(at) => Some(at.min(i64::MAX.unsigned_abs())),
        None => value.as_i64().map(|_| 0),
    }
}

/// A field name, shortened for messages.
fn shortened(field: &str) -> String {
    field.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW_SECONDS, event, key};
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(value: Value) -> Result<Filter, FilterError> {
        Filter::parse(&value, &RelayLimits::default())
    }

    fn matches(value: Value) -> bool {
        parse(value).unwrap().matches(&event(
            1,
            1621,
            0,
            &[&["a", "x", "y"], &["a", "z"], &["t"], &["alt", "q"]],
            "body",
        ))
    }

    #[test]
    fn each_condition_matches_and_fails_alone() {
        let id = event(1, 1621, 0, &[&["a", "x", "y"], &["a", "z"], &["t"], &["alt", "q"]], "body").id;
        for (yes, no) in [
            (json!({"ids": [id]}), json!({"ids": ["0".repeat(64)]})),
            (json!({"authors": [key(1), key(2)]}), json!({"authors": [key(2)]})),
            (json!({"kinds": [1, 1621]}), json!({"kinds": [1]})),
            (json!({"#a": ["z", "n"]}), json!({"#a": ["n"]})),
            (json!({"#a": ["x"]}), json!({"#a": ["y"]})),
            (json!({}), json!({"#t": [""]})),
            (json!({"since": NOW_SECONDS}), json!({"since": NOW_SECONDS + 1})),
            (json!({"until": NOW_SECONDS}), json!({"until": NOW_SECONDS - 1})),
            (json!({"until": u64::MAX}), json!({"until": -1})),
            (json!({"since": -5, "limit": 0}), json!({"since": -5, "kinds": []})),
        ] {
            assert!(matches(yes.clone()), "{yes}");
            assert!(!matches(no.clone()), "{no}");
        }
        assert!(!matches(json!({"kinds": [1621], "authors": [key(2)]})), "all conditions must hold");
    }

    #[test]
    fn a_missing_or_greater_limit_is_the_relays_own() {
        assert_eq!(parse(json!({})).unwrap().limit, 500);
        assert_eq!(parse(json!({"limit": 501})).unwrap().limit, 500);
        assert_eq!(parse(json!({"limit": u64::MAX})).unwrap().limit, 500);
        assert_eq!(parse(json!({"limit": 3})).unwrap().limit, 3);
    }

    #[test]
    fn what_is_no_filter_is_refused_with_its_field() {
        for (value, field) in [
            (json!({"ids": ["ab"]}), "ids"),
            (json!({"ids": "ab"}), "ids"),
            (json!({"ids": ["A".repeat(64)]}), "ids"),
            (json!({"authors": [1]}), "authors"),
            (json!({"kinds": [65_536]}), "kinds"),
            (json!({"kinds": [-1]}), "kinds"),
            (json!({"since": "1"}), "since"),
            (json!({"until": 1.5}), "until"),
            (json!({"limit": -1}), "limit"),
            (json!({"#e": [null]}), "#e"),
        ] {
            let refused = parse(value.clone());
            assert!(matches!(&refused, Err(FilterError::Value(name, _)) if name == field), "{value}: {refused:?}");
        }
        assert_eq!(parse(json!([])), Err(FilterError::NotAnObject));
    }

    #[test]
    fn unknown_fields_are_refused_and_not_left_out() {
        for field in ["search", "#", "#ab", "#1", "#ä", "Kinds", ""] {
            assert_eq!(parse(json!({field: ["x"]})), Err(FilterError::UnknownField(field.to_owned())));
        }
        assert!(parse(json!({"search": "x"})).unwrap_err().to_string().starts_with("unsupported: "));
    }

    #[test]
    fn tag_lists_that_are_compared_with_every_event_are_short() {
        let values = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let parse = |filter: Value| Filter::parse(&filter, &RelayLimits::default()).map(drop);
        let refused = Err(FilterError::TooManyTagValues(COMPARED_VALUES));
        assert_eq!(parse(json!({"#t": values(4_000)})), Ok(()));
        assert_eq!(parse(json!({"#t": values(200), "#p": values(4_000)})), Ok(()));
        assert_eq!(parse(json!({"#t": values(201), "#p": values(4_000)})), refused);
        assert_eq!(parse(json!({"#t": values(150), "#p": values(150), "#e": values(150)})), refused);
        assert_eq!(parse(json!({"ids": ["0".repeat(64)], "#t": values(201)})), refused);
    }

    #[test]
    fn all_lists_together_are_bounded() {
        let limits = RelayLimits { filter_values: 3, ..RelayLimits::default() };
        let filter = |kinds: &[u16]| Filter::parse(&json!({"kinds": kinds, "#t": ["a"]}), &limits);
        assert!(filter(&[1, 2]).is_ok());
        assert_eq!(filter(&[1, 2, 3]), Err(FilterError::TooManyValues(3)));
    }

    fn any_filter() -> impl Strategy<Value = Filter> {
        let id = || any::<[u8; 32]>();
        let ids = prop::option::of(prop::collection::btree_set(id().prop_map(EventId::from_byte_array), 0..4));
        let authors = prop::option::of(prop::collection::btree_set(id().prop_map(PublicKey::from_byte_array), 0..4));
        let kinds = prop::option::of(prop::collection::btree_set(any::<u16>(), 0..4));
        let letter = "[a-zA-Z]".prop_map(|name| TagLetter::new(&name).unwrap());
        let tags = prop::collection::btree_map(letter, prop::collection::btree_set(any::<String>(), 0..4), 0..4);
        let time = || prop::option::of(0..=i64::MAX.unsigned_abs());
        (ids, authors, kinds, tags, time(), time(), 0_usize..=500).prop_map(
            |(ids, authors, kinds, tags, since, until, limit)| Filter {
                ids,
                authors,
                kinds,
                tags,
                since,
                until,
                limit,
            },
        )
    }

    proptest! {
        #[test]
        fn a_filter_reads_back_from_its_json(filter in any_filter()) {
            let text = filter.to_json().to_string();
            prop_assert_eq!(parse(serde_json::from_str(&text).unwrap()), Ok(filter));
        }
    }
}
