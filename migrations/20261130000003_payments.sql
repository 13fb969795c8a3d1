-- Payments. The foreign keys that are missing here are missing for the reason given with
-- idempotency_keys.

CREATE TABLE payments (
    merchant_id uuid NOT NULL,
    id uuid NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    status text NOT NULL CHECK (
        status IN (
            'processing', 'succeeded', 'requires_capture', 'failed', 'canceled', 'requires_review'
        )
    ),
    amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 1000000000000),
    amount_captured bigint NOT NULL DEFAULT 0,
    amount_refunded bigint NOT NULL DEFAULT 0,
    refund_pending bigint NOT NULL DEFAULT 0,
    currency text COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    payment_method text NOT NULL,
    capture_method text NOT NULL CHECK (capture_method IN ('automatic', 'manual')),
    reference text,
    description text,
    customer text,
    metadata jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    failure_code text,
    failure_message text,
    gateway text NOT NULL,
    gateway_key text COLLATE "C" NOT NULL,
    gateway_reference text,
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, id),
    CONSTRAINT payments_gateway_key UNIQUE (merchant_id, gateway_key),
    CONSTRAINT payments_captured CHECK (amount_captured BETWEEN 0 AND amount),
    CONSTRAINT payments_refunded CHECK (
        amount_refunded >= 0
        AND refund_pending >= 0
        AND amount_refunded + refund_pending <= amount_captured
    ),
    CONSTRAINT payments_failure CHECK (
        (failure_code IS NULL) = (failure_message IS NULL)
        AND (failure_code IS NOT NULL) = (status = 'failed')
    ),
    CONSTRAINT payments_capture CHECK (
        CASE status
            WHEN 'succeeded' THEN amount_captured > 0
            WHEN 'requires_capture' THEN amount_captured = 0 AND capture_method = 'manual'
            WHEN 'failed' THEN amount_captured = 0
            WHEN 'canceled' THEN amount_captured = 0
            ELSE true
        END
    ),
    CONSTRAINT payments_times CHECK (updated_at >= created_at)
);

-- ?reference=: only payments that have one pay for it.
CREATE INDEX payments_by_reference ON payments (merchant_id, reference, id)
WHERE reference IS NOT NULL;

-- ?status=: the rare ones. A payment that goes from processing to succeeded never enters it.
CREATE INDEX payments_by_status ON payments (merchant_id, status, id)
WHERE status NOT IN ('processing', 'succeeded');

-- The edges of the state table (`payments/state.rs`, which a test compares with this function).
-- Every UPDATE also names the status that it expects; this is for the one that forgets.
CREATE FUNCTION refuse_forbidden_payment_edge() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.status, NEW.status) IN (
        ('processing', 'succeeded'),
        ('processing', 'requires_capture'),
        ('processing', 'failed'),
        ('processing', 'canceled'),
        ('processing', 'requires_review'),
        ('requires_capture', 'processing'),
        ('requires_capture', 'canceled'),
        ('requires_review', 'succeeded'),
        ('requires_review', 'requires_capture'),
        ('requires_review', 'failed'),
        ('requires_review', 'canceled')
    ) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a payment cannot go from % to %', OLD.status, NEW.status
        USING ERRCODE = 'check_violation', CONSTRAINT = 'payments_edge', TABLE = 'payments';
END;
$$;

COMMENT ON FUNCTION refuse_forbidden_payment_edge() IS
    'Terminal states never regress, whatever writes.';

CREATE TRIGGER payments_edge
BEFORE UPDATE OF status ON payments
FOR EACH ROW
WHEN (OLD.status IS DISTINCT FROM NEW.status)
EXECUTE FUNCTION refuse_forbidden_payment_edge();

COMMENT ON TABLE payments IS
    'Payments, never deleted: but for one whose claim was released, which never left the house.';
COMMENT ON COLUMN payments.merchant_id IS 'Owner of the payment.';
COMMENT ON COLUMN payments.id IS 'UUIDv7; pay_… outside of the database.';
COMMENT ON COLUMN payments.idempotency_key IS 'The key that made it.';
COMMENT ON COLUMN payments.status IS
    'processing: not decided. succeeded: captured. requires_capture: authorised. failed: declined. canceled: the authorisation was let go. requires_review: a person must look.';
COMMENT ON COLUMN payments.amount IS 'What was asked for, in minor units of the currency.';
COMMENT ON COLUMN payments.amount_captured IS 'What was taken, in minor units.';
COMMENT ON COLUMN payments.amount_refunded IS 'What was given back, in minor units.';
COMMENT ON COLUMN payments.refund_pending IS 'What refunds under way have reserved, in minor units.';
COMMENT ON COLUMN payments.currency IS 'ISO 4217, alphabetic.';
COMMENT ON COLUMN payments.payment_method IS 'A token; never card data.';
COMMENT ON COLUMN payments.capture_method IS 'automatic: captured with the authorisation. manual: later.';
COMMENT ON COLUMN payments.reference IS 'The merchant''s own name for it; not unique.';
COMMENT ON COLUMN payments.description IS 'For people.';
COMMENT ON COLUMN payments.customer IS 'The merchant''s name for the payer.';
COMMENT ON COLUMN payments.metadata IS 'Strings of the merchant, by name.';
COMMENT ON COLUMN payments.failure_code IS 'Why it failed: stable, kebab-case.';
COMMENT ON COLUMN payments.failure_message IS 'Why it failed, in the words of the gateway made safe.';
COMMENT ON COLUMN payments.gateway IS 'The gateway that moves the money.';
COMMENT ON COLUMN payments.gateway_key IS 'The idempotency key that the gateway got for its creation.';
COMMENT ON COLUMN payments.gateway_reference IS 'What the gateway calls it.';
COMMENT ON COLUMN payments.version IS 'Grows by one with every settle, which writes one event.';
COMMENT ON COLUMN payments.created_at IS 'When the key was claimed, by the clock of the service.';
COMMENT ON COLUMN payments.updated_at IS 'When it last changed, by the clock of the service.';
