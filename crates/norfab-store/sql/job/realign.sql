-- After a start, or when the clock went back to ?1: no instant kept for an unfinished job lies further off than its full
-- length, which for another attempt is ?2 seconds; the deadline counts from that. By up to ?3 seconds it may lie further
-- off: whoever added the job may have read the clock a moment later.
UPDATE jobs INDEXED BY idx_jobs_status
SET deadline = min(
        deadline,
        max(?1, ifnull(min(next_attempt_at, ?1 + ?2), ?1)) + ifnull(nullif(timeout, 0), 600)
    ),
    last_poll_timestamp = min(last_poll_timestamp, ?1),
    next_attempt_at = min(next_attempt_at, ?1 + ?2)
WHERE status IN ('NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND (
        deadline > max(?1, ifnull(min(next_attempt_at, ?1 + ?2), ?1)) + ifnull(nullif(timeout, 0), 600) + ?3
        OR last_poll_timestamp > ?1
        OR next_attempt_at > ?1 + ?2
    )
