//! The key that the gateway sees.
//!
//! It is a function of merchant, idempotency key, operation and step only (D6.5): after a crash, a
//! take-over, or a failover that lost the record, the same call goes out under the same key, and
//! the gateway moves the money once. It is a hash, so that the client's key, which may say
//! something about the client, stays here.

use super::{canonical::Canonical, key::IdempotencyKey, operation::Operation};
use crate::{
    gateways::{Call, GatewayKey},
    ids::MerchantId,
};

/// Begins every hash. A change of recipe would charge again whatever is in flight at that moment.
const PURPOSE: &str = "oncepay gateway key v1";

/// The key of one call to the gateway; `step` is that call.
pub fn gateway_key(
    merchant: MerchantId,
    key: &IdempotencyKey,
    operation: Operation,
    step: Call,
) -> GatewayKey {
    let mut canonical = Canonical::new(PURPOSE);
    canonical.bytes(merchant.uuid().as_bytes());
    canonical.text(key.as_str());
    canonical.text(operation.as_str());
    canonical.text(step.as_str());
    GatewayKey::new(format!("oncepay_{}", hex::encode(canonical.finish())))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn derived(merchant: u128, key: &str, step: Call) -> GatewayKey {
        gateway_key(
            MerchantId::from_uuid(Uuid::from_u128(merchant)),
            &IdempotencyKey::from_path_segment(key.as_bytes()).unwrap(),
            Operation::PaymentsCreate,
            step,
        )
    }

    #[test]
    fn version_1_never_changes() {
        let key = derived(
            0x018f_2d3c_4b5a_7000_8000_0000_0000_0001,
            "order-1",
            Call::Authorize,
        );

        assert_eq!(
            key.as_str(),
            "oncepay_a16a0a58fee3cbf783e688fe38a2fb8f658dec2413c1319c2b8936ddb28205a6"
        );
    }

    #[test]
    fn merchant_key_and_step_each_make_another_gateway_key() {
        let one = derived(1, "order-1", Call::Authorize);

        assert_eq!(derived(1, "order-1", Call::Authorize), one);
        assert_ne!(derived(2, "order-1", Call::Authorize), one);
        assert_ne!(derived(1, "order-2", Call::Authorize), one);
        assert_ne!(derived(1, "order-1", Call::Capture), one);
    }

    #[test]
    fn the_clients_key_does_not_show() {
        let key = derived(1, "order-1", Call::Authorize);

        assert!(!key.as_str().contains("order-1"), "{key:?}");
    }
}
