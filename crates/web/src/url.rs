//! Paths and segments of URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Characters that are encoded in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// Characters that are encoded in one segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a path of a repository for a URL.
pub fn path(bytes: &[u8]) -> String {
    percent_encode(bytes, PATH).to_string()
}

/// Encodes a text as one segment of a URL.
pub fn segment(text: &str) -> String {
    percent_encode(text.as_bytes(), SEGMENT).to_string()
}
