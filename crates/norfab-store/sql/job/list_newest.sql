-- Jobs of any status before row ?1, the newest first: service ?2, task ?3, completed by one of the workers ?4. It walks
-- back from the newest until the page ?5 is full.
SELECT rowid AS "row!: i64"
FROM jobs
WHERE rowid < ?1
    AND (?2 IS NULL OR service = ?2)
    AND (?3 IS NULL OR task = ?3)
    AND (?4 IS NULL OR EXISTS (
        SELECT 1
        FROM json_each(CASE WHEN json_valid(workers_completed) THEN workers_completed ELSE '[]' END) AS completed
        WHERE completed.value IN (SELECT value FROM json_each(?4))
    ))
ORDER BY rowid DESC
LIMIT ?5
