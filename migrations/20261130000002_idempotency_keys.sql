-- The record of every idempotency key, and the memory that a key was used.
--
-- These tables have no foreign keys. Each would cost an index look-up and a row lock per payment,
-- and the one on merchants a lock that all payments of a merchant share; the rows are written
-- together in one statement that cannot write one without the other.

CREATE TABLE used_keys (
    merchant_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    operation text NOT NULL,
    resource_id uuid NOT NULL,
    PRIMARY KEY (merchant_id, key)
);

COMMENT ON TABLE used_keys IS
    'That a key was used, for ever: it stays when the record expires, so that a key which comes back later is answered 410 and never executes again. Deleted only together with a released record that expired.';
COMMENT ON COLUMN used_keys.merchant_id IS 'Owner of the key: two merchants may use the same text.';
COMMENT ON COLUMN used_keys.key IS 'The idempotency key, compared as bytes.';
COMMENT ON COLUMN used_keys.operation IS 'What the key was used for: one namespace over all operations.';
COMMENT ON COLUMN used_keys.resource_id IS 'What it made: the payment or refund that the 410 names.';

CREATE TABLE idempotency_keys (
    merchant_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    operation text NOT NULL,
    request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    hash_version smallint NOT NULL,
    request jsonb NOT NULL CHECK (jsonb_typeof(request) = 'object'),
    resource_id uuid NOT NULL,
    gateway text NOT NULL,
    gateway_key text NOT NULL,
    first_sent_at timestamptz,
    status text NOT NULL CHECK (status IN ('processing', 'completed', 'failed')),
    retryable boolean NOT NULL DEFAULT false,
    response_status smallint,
    response jsonb,
    response_body bytea,
    response_headers jsonb,
    fence bigint NOT NULL CHECK (fence >= 1),
    owner uuid NOT NULL,
    lease_expires_at timestamptz,
    unknown_since timestamptz,
    attempts integer NOT NULL CHECK (attempts >= 1),
    request_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    expires_at timestamptz,
    PRIMARY KEY (merchant_id, key),
    CONSTRAINT idempotency_keys_processing CHECK (
        (status = 'processing') = (lease_expires_at IS NOT NULL)
    ),
    CONSTRAINT idempotency_keys_sent CHECK (
        (status = 'failed' AND retryable) = (first_sent_at IS NULL)
    ),
    CONSTRAINT idempotency_keys_unknown CHECK (
        unknown_since IS NULL OR status = 'processing'
    ),
    CONSTRAINT idempotency_keys_finished CHECK (
        (status <> 'processing') = (completed_at IS NOT NULL)
        AND (status <> 'processing') = (expires_at IS NOT NULL)
        AND (expires_at IS NULL OR expires_at > completed_at)
    ),
    CONSTRAINT idempotency_keys_response CHECK (
        CASE
            WHEN status = 'processing' OR retryable THEN
                response_status IS NULL
                AND response_body IS NULL
                AND response_headers IS NULL
                AND response IS NULL
            ELSE
                response_status IS NOT NULL
                AND response_body IS NOT NULL
                AND response_headers IS NOT NULL
        END
    ),
    CONSTRAINT idempotency_keys_status CHECK (
        CASE status
            WHEN 'processing' THEN NOT retryable
            WHEN 'completed' THEN NOT retryable AND response_status BETWEEN 200 AND 299
            WHEN 'failed' THEN retryable OR response_status BETWEEN 400 AND 499
        END
    )
);

-- For the cleaner: the oldest expired first.
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at)
WHERE status <> 'processing';

-- For whoever looks for work that its owner left.
CREATE INDEX idempotency_keys_by_lease ON idempotency_keys (lease_expires_at)
WHERE status = 'processing';

COMMENT ON TABLE idempotency_keys IS
    'The record of an idempotency key: who may execute it, and what every retry of it is answered. One row per key and merchant; deleted some time after it finished.';
COMMENT ON COLUMN idempotency_keys.merchant_id IS 'Owner of the key.';
COMMENT ON COLUMN idempotency_keys.key IS 'The idempotency key, compared as bytes.';
COMMENT ON COLUMN idempotency_keys.operation IS 'Dotted, as in metrics and spans: payments.create.';
COMMENT ON COLUMN idempotency_keys.request_hash IS
    'SHA-256 over operation, path, query and the members that were sent: another hash is another request.';
COMMENT ON COLUMN idempotency_keys.hash_version IS 'How request_hash was computed.';
COMMENT ON COLUMN idempotency_keys.request IS
    'The members that were sent: a mismatch names those that differ. Never shown.';
COMMENT ON COLUMN idempotency_keys.resource_id IS 'The payment or refund, chosen at the first claim.';
COMMENT ON COLUMN idempotency_keys.gateway IS 'The gateway it was claimed for; it is sent to no other.';
COMMENT ON COLUMN idempotency_keys.gateway_key IS
    'The idempotency key that the gateway gets: the same for every send, whatever happened.';
COMMENT ON COLUMN idempotency_keys.first_sent_at IS
    'From when on the gateway may have heard of it: set by the claim, before anything is sent, and cleared by a release.';
COMMENT ON COLUMN idempotency_keys.status IS
    'processing: somebody works on it, or will. completed: a 2xx is stored. failed: a 4xx is stored, or the key was released.';
COMMENT ON COLUMN idempotency_keys.retryable IS
    'True for a released record: nothing was executed, and the same request may claim the key again.';
COMMENT ON COLUMN idempotency_keys.response_status IS 'The HTTP status that is replayed.';
COMMENT ON COLUMN idempotency_keys.response IS
    'The response document, for people and queries; null where the body is no JSON. Replays never come from it: jsonb drops order, duplicates and spacing.';
COMMENT ON COLUMN idempotency_keys.response_body IS 'The bytes that are replayed.';
COMMENT ON COLUMN idempotency_keys.response_headers IS 'The headers that are replayed: Content-Type, Location.';
COMMENT ON COLUMN idempotency_keys.fence IS
    'Grows with every take-over and never resets: what a superseded owner writes meets no row.';
COMMENT ON COLUMN idempotency_keys.owner IS
    'Fresh and random for every acquisition: tells a claim whose COMMIT answer was lost from somebody else''s.';
COMMENT ON COLUMN idempotency_keys.lease_expires_at IS
    'Until when the owner is trusted, by the clock of the database; for a parked record, when to look again. Null when finished.';
COMMENT ON COLUMN idempotency_keys.unknown_since IS
    'Since when it is not known what the gateway did; the key answers 202 while it is set.';
COMMENT ON COLUMN idempotency_keys.attempts IS 'How often the record was acquired: by claim, re-claim or take-over.';
COMMENT ON COLUMN idempotency_keys.request_id IS 'The request that claimed it, named on replays.';
COMMENT ON COLUMN idempotency_keys.created_at IS 'When the key was first claimed.';
COMMENT ON COLUMN idempotency_keys.completed_at IS 'When it was settled or released; null while processing.';
COMMENT ON COLUMN idempotency_keys.expires_at IS
    'When it stops being replayed and may be deleted: completed_at plus the TTL of its status. Null while processing.';
