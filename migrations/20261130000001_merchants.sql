CREATE TABLE merchants (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants (id),
    name text,
    prefix text NOT NULL UNIQUE,
    secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

CREATE TABLE event_counters (
    merchant_id uuid PRIMARY KEY REFERENCES merchants (id),
    position bigint NOT NULL DEFAULT 0
);
