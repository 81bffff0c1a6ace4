//! Raw files. No content can run in the origin of the site: markup is served as plain text, pictures in a sandbox,
//! other files as a download.

use super::head::{Room, Shown};
use crate::App;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::show::text::last_segment;
use crate::visitor::Visitor;
use abide_forge::browse::EntryKind;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tokio_util::io::ReaderStream;

/// Opaque origin, no scripts, no subresources; inline styles of the file are allowed.
const SANDBOX: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Files up to this size are read in this process; larger ones are streamed through git.
const READ_WHOLE: usize = 1024 * 1024;

/// `GET /{owner}/{repo}/raw/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath, headers: HeaderMap) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.resolve(&page_path.rest(3)).await?;
    let entry = room.browser.entry(commit_path.commit, &commit_path.path).await;
    let entry = entry.map_err(|error| room.no_path(&commit_path, error))?;
    if !matches!(entry.kind, EntryKind::File | EntryKind::Executable | EntryKind::Symlink) {
        return Err(Problem::absent("This file does not exist on this branch, tag or commit.").into());
    }
    let tag = format!("\"{}\"", entry.oid);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)) {
        return Ok(protect(StatusCode::NOT_MODIFIED.into_response(), &tag));
    }
    let size = entry.size.unwrap_or_default();
    let name = last_segment(&commit_path.path);
    let (body, is_text) = match size <= READ_WHOLE as u64 {
        true => {
            let blob = room.browser.blob(entry.oid, READ_WHOLE).await?;
            let is_text = !blob.binary;
            (Body::from(blob.data), is_text)
        }
        // The content of a streamed file is not known in advance, so only the name decides whether it is text.
        false => (Body::from_stream(ReaderStream::new(room.browser.stream(entry.oid).await?)), looks_like_text(name)),
    };
    let (media_type, inline) = match picture_type(name) {
        Some(media_type) => (media_type, true),
        None if is_text => ("text/plain; charset=utf-8", true),
        None => ("application/octet-stream", false),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    let kind = if inline { "inline" } else { "attachment" };
    let disposition = format!("{kind}; filename*=UTF-8''{}", percent_encode(name, NON_ALPHANUMERIC));
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(protect(response, &tag))
}

fn protect(mut response: Response, tag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Media type of a picture by its file name.
pub(super) fn picture_type(name: &[u8]) -> Option<&'static str> {
    Some(match extension(name)?.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn looks_like_text(name: &[u8]) -> bool {
    const TEXT: [&str; 16] =
        ["c", "cpp", "css", "csv", "go", "h", "html", "java", "js", "json", "log", "md", "py", "rs", "sql", "txt"];
    extension(name).is_some_and(|extension| TEXT.contains(&extension.as_str()))
}

fn extension(name: &[u8]) -> Option<String> {
    let at = name.iter().rposition(|&byte| byte == b'.')?;
    std::str::from_utf8(&name[at + 1..]).ok().map(str::to_ascii_lowercase)
}
