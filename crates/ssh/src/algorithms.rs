//! Supported algorithms: modern ones only, and no compression. Packs are compressed already, and a stranger's zlib
//! stream is a risk.

use crate::{Options, PrivateKey};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::server::Config;
use russh::{MethodKind, MethodSet, Preferred, SshId, cipher, compression, kex, mac};
use std::borrow::Cow;
use std::time::Duration;

/// Key exchange. The last four are no methods; they signal strict key exchange and extension info.
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

/// Signatures: the host key is ed25519, user keys may be any of these.
const KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::SkEd25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::SkEcdsaSha2NistP256,
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

const CIPHERS: &[cipher::Name] = &[cipher::CHACHA20_POLY1305, cipher::AES_256_GCM, cipher::AES_128_GCM];

/// Every cipher above is authenticated and needs no MAC, but some clients require a common MAC name.
const MACS: &[mac::Name] = &[mac::HMAC_SHA512_ETM, mac::HMAC_SHA256_ETM];

/// Delay after an unknown key.
const REJECTION: Duration = Duration::from_millis(250);

/// The initial request for the list of methods counts as one; the rest allows an agent with many keys.
const AUTH_ATTEMPTS: usize = 10;

/// Interval of keep-alive requests to a silent client, and the number it may leave unanswered.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVES_OWED: usize = 3;

/// Never closes a live connection, because keep-alive answers count. It catches a client that reads no bytes.
const LEAST_INACTIVITY: Duration = Duration::from_secs(120);

/// Whether a user's key may use this signature algorithm.
pub(crate) fn accepts(signature: &Algorithm) -> bool {
    KEYS.contains(signature)
}

pub(crate) fn config(key: PrivateKey, options: &Options) -> Config {
    Config {
        server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-Abide")),
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: REJECTION,
        // Listing the methods is no attempt, so answer at once.
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![key],
        preferred: Preferred {
            kex: Cow::Borrowed(KEX),
            key: Cow::Borrowed(KEYS),
            host_key_certificates: Cow::Borrowed(&[]),
            cipher: Cow::Borrowed(CIPHERS),
            mac: Cow::Borrowed(MACS),
            compression: Cow::Borrowed(&[compression::NONE]),
        },
        max_auth_attempts: AUTH_ATTEMPTS,
        // Messages (up to a packet each) queued between a connection and one of its channels. This bounds memory; the
        // window does not, because russh returns the window as soon as it has read.
        channel_buffer_size: 16,
        event_buffer_size: 8,
        inactivity_timeout: Some(options.idle_timeout.max(LEAST_INACTIVITY)),
        // Not before authentication: clients expect no keep-alive request then.
        keepalive_interval: Some(KEEPALIVE.max(options.handshake_timeout * 2)),
        keepalive_max: KEEPALIVES_OWED,
        nodelay: true,
        ..Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha1_signatures_and_dsa_are_refused() {
        assert!(!accepts(&Algorithm::Rsa { hash: None }));
        assert!(!accepts(&Algorithm::Dsa));
        assert!(accepts(&Algorithm::Rsa { hash: Some(HashAlg::Sha256) }));
        assert!(accepts(&Algorithm::Ed25519));
    }
}
