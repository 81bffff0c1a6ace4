//! What we speak: modern algorithms only, and no compression (packs are compressed; a stranger's zlib stream is risk).

use crate::{Options, PrivateKey};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::server::Config;
use russh::{MethodKind, MethodSet, Preferred, SshId, cipher, compression, kex, mac};
use std::borrow::Cow;
use std::time::Duration;

/// Key exchange. The last four are no methods but say that we know strict key exchange and extension info.
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

/// Signatures: of these ours is ed25519, and people's keys may be any.
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

/// Every cipher above brings its own; some clients insist on a common name all the same.
const MACS: &[mac::Name] = &[mac::HMAC_SHA512_ETM, mac::HMAC_SHA256_ETM];

/// A key that is not known costs the client this long.
const REJECTION: Duration = Duration::from_millis(250);

/// The first question, which methods there are, counts as one; then there is room for an agent with many keys.
const AUTH_ATTEMPTS: usize = 10;

/// How often a silent client is asked whether it is still there, and how many answers it may owe.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVES_OWED: usize = 3;

/// No live connection is cut by this one, because answers to keep-alives count. It is for a client that takes no bytes.
const LEAST_INACTIVITY: Duration = Duration::from_secs(120);

/// Whether someone's key may prove itself with this kind of signature.
pub(crate) fn accepts(signature: &Algorithm) -> bool {
    KEYS.contains(signature)
}

pub(crate) fn config(key: PrivateKey, options: &Options) -> Config {
    Config {
        server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-Abide")),
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: REJECTION,
        // Asking which methods there are is no attempt: it can be answered at once.
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
        // Messages, each up to a packet, that wait between a connection and one of its channels: this and not the
        // window is what bounds memory, because russh gives the window back as soon as it has read.
        channel_buffer_size: 16,
        event_buffer_size: 8,
        inactivity_timeout: Some(options.idle_timeout.max(LEAST_INACTIVITY)),
        // Not before a key is proved: clients expect no such question then.
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
