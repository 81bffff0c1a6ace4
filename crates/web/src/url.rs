//! Paths and segments of URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Characters that are encoded in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// Characters that are encoded in one segment of it.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path of a repository, as it is written in a URL.
pub fn path(bytes: &[u8]) -> String {
    percent_encode(bytes, PATH).to_string()
}

/// Any text as one segment of a URL.
pub fn segment(text: &str) -> String {
    percent_encode(text.as_bytes(), SEGMENT).to_string()
}
