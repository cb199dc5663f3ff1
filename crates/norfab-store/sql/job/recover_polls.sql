-- Everything else in flight counts as never asked for; what has no deadline gets one (?1).
UPDATE jobs INDEXED BY idx_jobs_status
SET last_poll_timestamp = 0, deadline = ifnull(deadline, ?1)
WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
