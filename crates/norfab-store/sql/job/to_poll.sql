-- The jobs in flight that were last asked for at ?1 or earlier, the longest-ago first, at most ?3 of them.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY jobs_to_poll
WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND ifnull(last_poll_timestamp, 0) <= ?1
    AND (?2 IS NULL OR uuid IN (SELECT value FROM json_each(?2)))
ORDER BY ifnull(last_poll_timestamp, 0), rowid
LIMIT ?3
