//! Transfer offers: results of answers. Permissions are in [`crate::policy`].

use crate::words::words;
use crate::{Timestamp, UserId};

words! {
    /// Status of an offer. Only a pending one can change.
    Status {
        /// Waiting for the recipient.
        Pending = "pending",
        Accepted = "accepted",
        Declined = "declined",
        /// The offer was cancelled, or the repository was deleted or handed over otherwise.
        Canceled = "canceled",
        /// Nobody answered before the expiry.
        Expired = "expired",
    }
}

/// Answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Accept,
    Decline,
    Cancel,
}

/// The offer and the current state of its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub status: Status,
    pub expires_at: Timestamp,
    /// Owner at the time of the offer.
    pub from_owner: UserId,
    /// Current owner.
    pub owner: UserId,
    /// Whether the repository is soft-deleted.
    pub deleted: bool,
}

/// Reason why an offer cannot be made or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It was answered before.
    #[error("the transfer offer is already {0}")]
    Terminal(Status),
    #[error("the transfer offer has expired; ask for a new one")]
    Expired,
    /// The repository has another owner than when it was offered, or is deleted.
    #[error("the repository no longer exists")]
    Moved,
    /// The repository already has a pending offer.
    #[error("the repository already has a transfer offer; cancel that offer first")]
    Pending,
    /// The recipient already owns the repository.
    #[error("this account already owns the repository")]
    ToSelf,
}

/// New status of an offer after an answer.
pub fn answer(offer: Offer, answer: Answer, now: Timestamp) -> Result<Status, Refusal> {
    if offer.status != Status::Pending {
        return Err(Refusal::Terminal(offer.status));
    }
    if now >= offer.expires_at {
        return Err(Refusal::Expired);
    }
    match answer {
        Answer::Accept if offer.deleted || offer.owner != offer.from_owner => Err(Refusal::Moved),
        Answer::Accept => Ok(Status::Accepted),
        Answer::Decline => Ok(Status::Declined),
        Answer::Cancel => Ok(Status::Canceled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
    const ANSWERS: [Answer; 3] = [Answer::Accept, Answer::Decline, Answer::Cancel];

    #[test]
    fn every_answer_to_every_offer() {
        let (giver, other) = (UserId::new(1), UserId::new(2));
        for &status in Status::ALL {
            for expires_at in [NOW, NOW.plus(Duration::from_micros(1))] {
                for (owner, deleted) in [(giver, false), (giver, true), (other, false), (other, true)] {
                    for given in ANSWERS {
                        let offer = Offer { status, expires_at, from_owner: giver, owner, deleted };
                        let got = answer(offer, given, NOW);
                        let still_there = owner == giver && !deleted;
                        let expected = match (status, given) {
                            (Status::Pending, _) if expires_at == NOW => Err(Refusal::Expired),
                            (Status::Pending, Answer::Accept) if !still_there => Err(Refusal::Moved),
                            (Status::Pending, Answer::Accept) => Ok(Status::Accepted),
                            (Status::Pending, Answer::Decline) => Ok(Status::Declined),
                            (Status::Pending, Answer::Cancel) => Ok(Status::Canceled),
                            (ended, _) => Err(Refusal::Terminal(ended)),
                        };
                        assert_eq!(got, expected, "{offer:?} {given:?}");
                    }
                }
            }
        }
    }
}
