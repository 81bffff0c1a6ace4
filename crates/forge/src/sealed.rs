//! Uses of the installation's secret besides the audit chain: sealing other secrets at rest, and signing what
//! comes back to us. Every purpose has a key of its own, derived from the one in `secret.key`.

use crate::Forge;
use aes_gcm::aead::{Aead as _, KeyInit as _};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::{Value as Json, json};
use sha2::Sha256;

const NONCE_LEN: usize = 12;

/// A signature over a message for one purpose.
pub(crate) fn sign(forge: &Forge, purpose: &str, message: &[u8]) -> [u8; 32] {
    mac(&derive(forge, purpose), message).finalize().into_bytes().into()
}

/// Whether that is the signature. Takes as long for a wrong one as for the right one.
pub(crate) fn is_signed(forge: &Forge, purpose: &str, message: &[u8], signature: &[u8]) -> bool {
    mac(&derive(forge, purpose), message).verify_slice(signature).is_ok()
}

/// Encrypts something to be kept for one purpose. Nobody can read or change it without the installation's secret.
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

/// A job's payload that nobody can read who looks at the job.
pub(crate) fn seal_payload(forge: &Forge, purpose: &str, plain: &[u8]) -> Json {
    json!({ "sealed": STANDARD.encode(seal(forge, purpose, plain)) })
}

/// Opens a job's sealed payload.
pub(crate) fn open_payload(forge: &Forge, purpose: &str, payload: &Json) -> Option<Vec<u8>> {
    open(forge, purpose, &STANDARD.decode(payload["sealed"].as_str()?).ok()?)
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
