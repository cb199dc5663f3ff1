-- Jobs of a service (?2) before row ?1, the newest first, at most ?5 of them: task ?3, completed by one of the workers ?4.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY idx_jobs_service
WHERE service = ?2 AND rowid < ?1
    AND (?3 IS NULL OR task = ?3)
    AND (?4 IS NULL OR EXISTS (
        SELECT 1
        FROM json_each(CASE WHEN json_valid(workers_completed) THEN workers_completed ELSE '[]' END) AS completed
        WHERE completed.value IN (SELECT value FROM json_each(?4))
    ))
ORDER BY rowid DESC
LIMIT ?5
