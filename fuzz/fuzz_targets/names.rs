//! An accepted name is safe in a URL and in a path, and parses to itself again.
#![no_main]

use abide_core::{RepoName, UserName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(name) = text.parse::<UserName>() {
        assert_eq!(name.as_str().parse(), Ok(name.clone()));
        assert!(name.as_str().len() <= 39 && !name.as_str().starts_with('-'));
        assert!(name.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    }
    if let Ok(name) = text.parse::<RepoName>() {
        assert_eq!(name.as_str().parse(), Ok(name.clone()));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        assert!(name.as_str().len() <= 100 && name.as_str().bytes().all(plain));
        assert!(!name.as_str().contains("..") && !name.as_str().starts_with(['.', '-']));
    }
});
