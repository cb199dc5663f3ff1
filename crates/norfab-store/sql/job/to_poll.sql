-- The jobs in flight that were last asked for at ?1 or earlier, the longest-ago first, and before them those of which that
-- is no instant, at most ?2 of them.
SELECT rowid AS "row!: i64" FROM jobs INDEXED BY jobs_to_poll
WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND ifnull(last_poll_timestamp, 0) >= 253402300800
UNION ALL
SELECT * FROM (
    SELECT rowid FROM jobs INDEXED BY jobs_to_poll
    WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
        AND ifnull(last_poll_timestamp, 0) <= ?1
    ORDER BY ifnull(last_poll_timestamp, 0), rowid
    LIMIT ?2
) AS due
LIMIT ?2
