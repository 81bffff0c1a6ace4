//! Uses of the installation's secret besides the audit chain: sealing other secrets at rest, and signing values that
//! clients send back. Every purpose has its own key, derived from the one in `secret.key`.

use crate::Forge;
use aes_gcm::aead::{Aead as _, KeyInit as _};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

const NONCE_LEN: usize = 12;

/// A signature over a message for one purpose.
pub(crate) fn sign(forge: &Forge, purpose: &str, message: &[u8]) -> [u8; 32] {
    mac(&derive(forge, purpose), message).finalize().into_bytes().into()
}

/// Whether the signature is right, in constant time.
pub(crate) fn is_signed(forge: &Forge, purpose: &str, message: &[u8], signature: &[u8]) -> bool {
    mac(&derive(forge, purpose), message).verify_slice(signature).is_ok()
}

/// Encrypts and authenticates a value for one purpose.
pub(crate) fn seal(forge: &Forge, purpose: &str, plain: &[u8]) -> Vec<u8> {
    let mut nonce = [0; NONCE_LEN];
    forge.random().fill(&mut nonce);
    let sealed = cipher(forge, purpose).encrypt(&Nonce::from(nonce), plain).expect("only gigabytes cannot be sealed");
    [nonce.as_slice(), &sealed].concat()
}

/// Opens a sealed value; `None` if its purpose or secret is another one, or if it was altered.
pub(crate) fn open(forge: &Forge, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
    cipher(forge, purpose).decrypt(&Nonce::from(*nonce), sealed).ok()
}

/// Payload of a job, encrypted, so that lists of jobs do not show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SealedPayload {
    /// In base64.
    sealed: String,
}

impl SealedPayload {
    pub(crate) fn new(forge: &Forge, purpose: &str, plain: &[u8]) -> Self {
        Self { sealed: STANDARD.encode(seal(forge, purpose, plain)) }
    }

    /// The plain bytes; `None` as in [`open`].
    pub(crate) fn open(&self, forge: &Forge, purpose: &str) -> Option<Vec<u8>> {
        open(forge, purpose, &STANDARD.decode(&self.sealed).ok()?)
    }
}

fn derive(forge: &Forge, purpose: &str) -> [u8; 32] {
    mac(forge.key().expose(), purpose.as_bytes()).finalize().into_bytes().into()
}

fn cipher(forge: &Forge, purpose: &str) -> Aes256Gcm {
    Aes256Gcm::new(&derive(forge, purpose).into())
}

fn mac(key: &[u8; 32], message: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac
}
