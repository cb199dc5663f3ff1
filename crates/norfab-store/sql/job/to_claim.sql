-- The NEW jobs that may be sent now (?1), at most ?3 of them: the oldest first, then those that were sent before.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY jobs_to_send
WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) <= ?1
    AND (?2 IS NULL OR uuid IN (SELECT value FROM json_each(?2)))
ORDER BY ifnull(next_attempt_at, 0), rowid
LIMIT ?3
