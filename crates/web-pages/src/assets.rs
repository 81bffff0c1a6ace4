//! The stylesheet, the script and the icon. Their URLs contain a hash of their content, so browsers may cache them
//! forever.

use super::path::PagePath;
use super::problem::Problem;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

struct Asset {
    stem: &'static str,
    extension: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

const ASSETS: [Asset; 3] = [
    Asset {
        stem: "abide",
        extension: "css",
        media_type: "text/css; charset=utf-8",
        content: include_bytes!("../assets/abide.css"),
    },
    Asset {
        stem: "abide",
        extension: "js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../assets/abide.js"),
    },
    Asset {
        stem: "icon",
        extension: "svg",
        media_type: "image/svg+xml",
        content: include_bytes!("../assets/icon.svg"),
    },
];

static NAMES: LazyLock<[String; 3]> = LazyLock::new(|| {
    ASSETS.each_ref().map(|asset| {
        let digest = Sha256::digest(asset.content);
        let hash = hex::encode(&digest[..6]);
        format!("/assets/{}-{hash}.{}", asset.stem, asset.extension)
    })
});

pub(crate) fn css() -> &'static str {
    &NAMES[0]
}

pub(crate) fn js() -> &'static str {
    &NAMES[1]
}

pub(crate) fn icon() -> &'static str {
    &NAMES[2]
}

/// Serves an asset.
pub(super) async fn serve(page_path: PagePath) -> Response {
    let asked = format!("/assets/{}", page_path.segment(1));
    let Some(at) = NAMES.iter().position(|name| *name == asked) else { return Problem::not_found().into_response() };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(ASSETS[at].media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, ASSETS[at].content).into_response()
}
