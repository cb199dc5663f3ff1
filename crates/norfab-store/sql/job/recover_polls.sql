-- Everything else in flight counts as never asked for; what has no deadline gets one (?2).
UPDATE jobs INDEXED BY idx_jobs_status
SET last_poll_timestamp = 0, deadline = ifnull(deadline, ?2)
WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
