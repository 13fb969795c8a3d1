-- The only way in which records are deleted, for the background task, `oncepay cleanup` and pg_cron.

CREATE FUNCTION delete_expired_idempotency_keys(batch_size integer) RETURNS bigint
LANGUAGE sql AS $$
    -- Oldest first, and past rows that somebody holds: two cleaners share the work, and a record
    -- that is being claimed again is left alone.
    WITH expired AS (
        SELECT merchant_id, key
        FROM idempotency_keys
        WHERE status <> 'processing'
          AND expires_at <= now()
        ORDER BY expires_at
        LIMIT batch_size
        FOR UPDATE SKIP LOCKED
    ),
    -- The condition stands here again: it is this statement that must never delete a live row.
    deleted AS (
        DELETE FROM idempotency_keys AS record
        USING expired
        WHERE record.merchant_id = expired.merchant_id
          AND record.key = expired.key
          AND record.status <> 'processing'
          AND record.expires_at <= now()
        RETURNING record.merchant_id, record.key, record.retryable
    ),
    -- Only a released record takes its used key along: nothing was executed under it.
    freed AS (
        DELETE FROM used_keys AS used
        USING deleted
        WHERE deleted.retryable
          AND used.merchant_id = deleted.merchant_id
          AND used.key = deleted.key
    )
    SELECT count(*) FROM deleted;
$$;

COMMENT ON FUNCTION delete_expired_idempotency_keys(integer) IS
    'Deletes at most batch_size records that are finished and expired, oldest first, and says how many. Call it until it answers less than batch_size. Used keys stay, but for those of released records.';
