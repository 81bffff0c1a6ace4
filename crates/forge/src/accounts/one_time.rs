//! Secrets that are issued once and stored only as a hash: cookies and links.

use crate::{Fault, Forge};
use abide_core::Redacted;
use abide_store::accounts::links::{self, Link, Purpose};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) use crate::secret::hash;

/// A secret with 256 random bits. The text is issued, the hash is stored.
#[derive(Clone)]
pub(crate) struct OneTime {
    pub text: Redacted<String>,
    pub hash: [u8; 32],
}

impl OneTime {
    pub(crate) fn new(forge: &Forge) -> Self {
        let mut random = [0; 32];
        forge.random().fill(&mut random);
        let text = URL_SAFE_NO_PAD.encode(random);
        Self { hash: hash(&text), text: text.into() }
    }
}

/// The link that this secret opens, if it still works.
pub(super) async fn open(forge: &Forge, purpose: Purpose, text: &str) -> Result<Option<Link>, Fault> {
    let mut conn = forge.store().read().await?;
    Ok(links::open(&mut conn, purpose, &hash(text), forge.clock().now()).await?)
}

/// The URL of a page, under the public URL.
pub(crate) fn url(forge: &Forge, page: &str, secret: &OneTime) -> String {
    format!("{}/{page}/{}", forge.settings().public_url, secret.text.expose())
}
