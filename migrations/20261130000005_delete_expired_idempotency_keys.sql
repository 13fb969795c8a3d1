-- The only way in which records are deleted, for the background task, `oncepay cleanup` and pg_cron.

CREATE FUNCTION delete_expired_idempotency_keys(batch_size integer) RETURNS bigint
LANGUAGE sql AS $$
    -- Oldest first, and past rows that somebody holds: two cleaners share the work, and a record
    -- that is being claimed again is left alone.
    --
    -- By ctid in an array, because the planner does not know the limit and would otherwise join
    -- with a hash over the whole backlog: at 700,000 expired rows a batch of 1,000 took 382 ms that
    -- way, and takes 3 ms this way. A row that changed since has another ctid and is left alone.
    -- The condition stands twice: it is the DELETE that must never meet a live row.
    WITH deleted AS (
        DELETE FROM idempotency_keys
        WHERE ctid = ANY (ARRAY(
            SELECT ctid
            FROM idempotency_keys
            WHERE status <> 'processing'
              AND expires_at <= now()
            ORDER BY expires_at
            -- Without a size nothing is deleted; LIMIT NULL would be no limit.
            LIMIT COALESCE(batch_size, 0)
            FOR UPDATE SKIP LOCKED
        ))
          AND status <> 'processing'
          AND expires_at <= now()
        RETURNING merchant_id, key, retryable
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
