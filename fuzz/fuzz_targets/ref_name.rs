//! An accepted ref name can be a file below `refs/`, and parses to itself again.
#![no_main]

use abide_core::RefName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(branch) = RefName::branch(text) {
            assert_eq!(branch.as_branch(), Some(text));
        }
    }
    let Ok(name) = RefName::from_bytes(bytes) else { return };
    let text = name.as_str();
    assert_eq!(text.as_bytes(), bytes);
    assert_eq!(text.parse(), Ok(name.clone()));
    assert!(text.starts_with("refs/") && !text.contains("..") && !text.contains("//"));
    assert!(text.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock")));
    assert!(!text.bytes().any(|byte| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte)));
});
