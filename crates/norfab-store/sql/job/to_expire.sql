-- The jobs that are NEW or in flight and whose deadline has passed (?1), the earliest first, at most ?3 of them. One that
-- waits for another attempt is left alone until then.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY jobs_to_expire
WHERE status IN ('NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND max(deadline, ifnull(next_attempt_at, 0)) <= ?1
    AND (?2 IS NULL OR uuid IN (SELECT value FROM json_each(?2)))
ORDER BY max(deadline, ifnull(next_attempt_at, 0)), rowid
LIMIT ?3
