//! Offers to hand a repository over: what an answer comes to. Who may answer is [`crate::policy`]'s question.

use crate::words::words;
use crate::{Timestamp, UserId};

words! {
    /// Where an offer stands. Only a pending one can change.
    Status {
        /// Waits for the recipient.
        Pending = "pending",
        /// The repository is the recipient's.
        Accepted = "accepted",
        /// The recipient does not want it.
        Declined = "declined",
        /// The offer was taken back, or the repository went another way.
        Canceled = "canceled",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

/// What someone answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Take the repository.
    Accept,
    /// Say no.
    Decline,
    /// Take the offer back.
    Cancel,
}

/// What the decision needs to know of the offer and of the repository as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Where it stands.
    pub status: Status,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
    /// Whose the repository was when it was offered.
    pub from_owner: UserId,
    /// Whose it is now.
    pub owner: UserId,
    /// Whether it is soft-deleted now.
    pub deleted: bool,
}

/// Why an offer cannot be made or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It was answered before.
    #[error("the transfer offer is already {0}")]
    Terminal(Status),
    /// Too late.
    #[error("the transfer offer has expired; ask for a new one")]
    Expired,
    /// The repository belongs to someone else than when it was offered, or is deleted.
    #[error("the repository no longer exists")]
    Moved,
    /// There is one already.
    #[error("the repository already has a transfer offer; cancel that offer first")]
    Pending,
    /// To its owner.
    #[error("this account already owns the repository")]
    ToSelf,
}

/// Where an answer takes an offer.
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
