-- The delayed jobs whose time has come (?1), the earliest first, at most ?3 of them.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY jobs_due
WHERE status = 'SCHEDULED' AND scheduled_for <= ?1
    AND (?2 IS NULL OR uuid IN (SELECT value FROM json_each(?2)))
ORDER BY scheduled_for, rowid
LIMIT ?3
