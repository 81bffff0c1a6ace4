//! How what was sent to a webhook stands.

use abide_core::webhooks::DeliveryState;

/// A class of badge.
pub(crate) fn class(state: &DeliveryState) -> &'static str {
    match state {
        DeliveryState::Queued | DeliveryState::Sending => "",
        DeliveryState::Ok => "ok",
        DeliveryState::Failed => "danger",
    }
}

/// A word or two.
pub(crate) fn word(state: &DeliveryState) -> &'static str {
    match state {
        DeliveryState::Queued => "Queued",
        DeliveryState::Sending => "Sending",
        DeliveryState::Ok => "Delivered",
        DeliveryState::Failed => "Failed",
    }
}
