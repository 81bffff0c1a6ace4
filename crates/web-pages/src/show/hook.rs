//! Badges of webhook deliveries.

use abide_core::webhooks::DeliveryState;

pub(crate) fn class(state: &DeliveryState) -> &'static str {
    match state {
        DeliveryState::Queued | DeliveryState::Sending => "",
        DeliveryState::Ok => "ok",
        DeliveryState::Failed => "danger",
    }
}

pub(crate) fn word(state: &DeliveryState) -> &'static str {
    match state {
        DeliveryState::Queued => "Queued",
        DeliveryState::Sending => "Sending",
        DeliveryState::Ok => "Delivered",
        DeliveryState::Failed => "Failed",
    }
}
