-- The delayed jobs whose start deadline has passed (?1), at most ?3 of them.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY jobs_overdue
WHERE status = 'SCHEDULED' AND start_deadline < ?1
    AND (?2 IS NULL OR uuid IN (SELECT value FROM json_each(?2)))
ORDER BY start_deadline, rowid
LIMIT ?3
