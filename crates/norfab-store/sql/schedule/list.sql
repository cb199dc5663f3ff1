-- The schedules that are deleted or not (?6), behind row ?1, in the order of their creation, at most ?5 of them: in one of
-- the states ?2, of service ?3, of task ?4.
SELECT rowid AS "row!: i64"
FROM job_schedules
WHERE rowid > ?1 AND (deleted_at IS NOT NULL) = ?6
    AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR service = ?3)
    AND (?4 IS NULL OR task = ?4)
ORDER BY rowid
LIMIT ?5
