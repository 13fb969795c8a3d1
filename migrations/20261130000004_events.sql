-- The outbox and feed: what happened, written in the transaction in which it happened.

CREATE TABLE events (
    merchant_id uuid NOT NULL,
    position bigint NOT NULL CHECK (position >= 1),
    id uuid NOT NULL,
    type text NOT NULL,
    payment_id uuid NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 1),
    data jsonb NOT NULL CHECK (jsonb_typeof(data) = 'object'),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, position),
    CONSTRAINT events_sequence UNIQUE (merchant_id, payment_id, sequence)
);

COMMENT ON TABLE events IS 'Facts, never changed: each settle of a payment writes one.';
COMMENT ON COLUMN events.merchant_id IS 'Owner of the feed.';
COMMENT ON COLUMN events.position IS
    'Place in the feed of the merchant, without gaps and in the order of commits.';
COMMENT ON COLUMN events.id IS 'UUIDv7; evt_… outside of the database.';
COMMENT ON COLUMN events.type IS 'What happened, in the past: payment.succeeded.';
COMMENT ON COLUMN events.payment_id IS 'The payment it happened to.';
COMMENT ON COLUMN events.sequence IS 'The version of the payment after it happened.';
COMMENT ON COLUMN events.data IS 'The payment as it was then.';
COMMENT ON COLUMN events.created_at IS 'When it happened, by the clock of the service.';
