//! A deterministic gateway: the payment method decides.
