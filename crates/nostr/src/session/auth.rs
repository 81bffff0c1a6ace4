//! Proof of a key (NIP-42).

use super::{Action, Session, send};
use crate::git::Service;
use crate::grasp::Refusal;
use crate::{Event, EventId, PublicKey, event, kinds, message, verify_signature};
use abide_core::Timestamp;

const OTHER_CHALLENGE: &str = "invalid: wrong challenge; the challenge of this connection follows";

/// Keys that one connection may prove: each is looked up for as long as the connection lasts.
const MOST_KEYS: usize = 16;

impl Session {
    /// Handles a proof. Only a client that answers another challenge gets this connection's challenge. Clients that are
    /// asked and decline treat it as a failure and give up their request.
    pub(super) fn on_auth(&mut self, proof: &Event, now: Timestamp) -> Vec<Action> {
        let Some(refusal) = self.judge_auth(proof, now) else {
            return vec![Action::Prove(proof.id, proof.pubkey)];
        };
        let mut actions = send(message::ok(&proof.id, false, refusal));
        if refusal == OTHER_CHALLENGE {
            actions.extend(send(message::auth(&self.challenge)));
        }
        actions
    }

    /// Reports the account check of a proved key: the key is accepted or refused.
    pub fn on_proved(&mut self, id: &EventId, key: PublicKey, judged: Result<(), Refusal>) -> Vec<Action> {
        match judged {
            Ok(()) => {
                self.proven.insert(key);
                send(message::ok(id, true, ""))
            }
            Err(refusal) => {
                self.proven.remove(&key);
                send(message::ok(id, false, &refusal.to_string()))
            }
        }
    }

    /// Checks the signature last, so that cheap refusals come first.
    fn judge_auth(&self, proof: &Event, now: Timestamp) -> Option<&'static str> {
        let off = event::seconds(now).abs_diff(proof.created_at.as_secs());
        let relay = event::first_value(proof, "relay").and_then(|url| Service::parse(url).ok());
        if proof.kind.as_u16() != kinds::RELAY_AUTH {
            Some("invalid: AUTH needs an event of kind 22242")
        } else if event::first_value(proof, "challenge") != Some(&self.challenge) {
            Some(OTHER_CHALLENGE)
        } else if relay.as_ref() != Some(&self.service) {
            Some("invalid: the relay tag has the URL of another relay")
        } else if off > self.limits.auth_window.as_secs() {
            Some("invalid: created_at is too far from the current time; check the clock")
        } else if self.proven.len() >= MOST_KEYS {
            Some("restricted: this connection has authenticated the maximum number of keys")
        } else if !verify_signature(proof) {
            Some("invalid: the signature is not valid")
        } else {
            None
        }
    }
}
