-- Merchants and their API keys. Both are read before the merchant of a request is known, so their
-- keys are the only ones that do not start with merchant_id.

CREATE TABLE merchants (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE merchants IS 'The tenants. Never deleted: payments and used keys name them for ever.';
COMMENT ON COLUMN merchants.id IS 'UUIDv7; mer_… outside of the database.';
COMMENT ON COLUMN merchants.name IS 'For people; not unique.';
COMMENT ON COLUMN merchants.created_at IS 'When the merchant was created, by the clock of the database.';

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants (id),
    name text CHECK (char_length(name) BETWEEN 1 AND 255),
    prefix text COLLATE "C" NOT NULL UNIQUE,
    secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id, id);

COMMENT ON TABLE api_keys IS 'Credentials of merchants. The secret is shown once and never stored.';
COMMENT ON COLUMN api_keys.id IS 'UUIDv7; key_… outside of the database.';
COMMENT ON COLUMN api_keys.merchant_id IS 'Whose credential it is.';
COMMENT ON COLUMN api_keys.name IS 'For people: where the key is used.';
COMMENT ON COLUMN api_keys.prefix IS 'The public part of the secret, by which the row is found.';
COMMENT ON COLUMN api_keys.secret_hash IS
    'SHA-256 of the whole secret, which holds 256 random bits: no slow hash is needed.';
COMMENT ON COLUMN api_keys.created_at IS 'When the key was created, by the clock of the database.';
COMMENT ON COLUMN api_keys.revoked_at IS 'From when on the key is refused; null while it is valid.';

CREATE TABLE event_counters (
    merchant_id uuid PRIMARY KEY REFERENCES merchants (id),
    position bigint NOT NULL DEFAULT 0 CHECK (position >= 0)
);

COMMENT ON TABLE event_counters IS
    'One row per merchant, locked last by every settle: it makes the order of the feed the order of commits, without gaps. A sequence would have neither.';
COMMENT ON COLUMN event_counters.merchant_id IS 'Whose feed it is; the row is created with the merchant.';
COMMENT ON COLUMN event_counters.position IS 'The position of the newest event of the merchant.';
