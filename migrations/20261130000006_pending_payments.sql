-- Payments that a gateway has accepted and decides later (D6.7): when to ask again where no webhook
-- comes. A table of its own, because almost no payment is ever in it: a column on payments would
-- cost every payment its width and every settle an index.

CREATE TABLE pending_payments (
    merchant_id uuid NOT NULL,
    payment_id uuid NOT NULL,
    next_poll_at timestamptz NOT NULL,
    polls integer NOT NULL DEFAULT 0 CHECK (polls >= 0),
    PRIMARY KEY (merchant_id, payment_id)
);

-- For the poller: what is due first.
CREATE INDEX pending_payments_by_next_poll ON pending_payments (next_poll_at);

COMMENT ON TABLE pending_payments IS
    'Payments whose record is finished while the gateway has still to decide. A row is written by the settle that stores `processing`, and goes with the settle that decides; one that outlives its payment''s decision is dropped at the next poll.';
COMMENT ON COLUMN pending_payments.merchant_id IS 'Owner of the payment.';
COMMENT ON COLUMN pending_payments.payment_id IS 'The payment.';
COMMENT ON COLUMN pending_payments.next_poll_at IS
    'When the gateway is asked again, by the clock of the database. Moved before it is asked, so that several instances do not ask for the same payment.';
COMMENT ON COLUMN pending_payments.polls IS 'How often it was asked; the pause doubles with each.';

-- Whoever was accepted before this table existed is asked about at once. Its record is finished,
-- or was deleted since; a payment that somebody still works on has a record in processing.
INSERT INTO pending_payments (merchant_id, payment_id, next_poll_at)
SELECT payment.merchant_id, payment.id, now()
FROM payments AS payment
WHERE payment.status = 'processing'
  AND payment.version > 0
  AND NOT EXISTS (
      SELECT
      FROM idempotency_keys AS record
      WHERE record.merchant_id = payment.merchant_id
        AND record.resource_id = payment.id
        AND record.status = 'processing'
  );
