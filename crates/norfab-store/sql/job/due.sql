-- The delayed jobs to look at, at most ?3 of them: first those whose instants are none (what lies behind the year 9999 or
-- is no number, as it sorts behind all numbers), then those due at ?1, the earliest first, then those that had to start
-- before ?2. A job may come twice.
SELECT rowid AS "row!: i64" FROM jobs INDEXED BY jobs_due
WHERE status = 'SCHEDULED' AND scheduled_for >= 253402300800
UNION ALL
SELECT rowid FROM jobs INDEXED BY jobs_overdue
WHERE status = 'SCHEDULED' AND start_deadline >= 253402300800
UNION ALL
SELECT * FROM (
    SELECT rowid FROM jobs INDEXED BY jobs_due
    WHERE status = 'SCHEDULED' AND scheduled_for <= ?1
    ORDER BY scheduled_for, rowid
    LIMIT ?3
) AS due
UNION ALL
SELECT * FROM (
    SELECT rowid FROM jobs INDEXED BY jobs_overdue
    WHERE status = 'SCHEDULED' AND start_deadline < ?2
    ORDER BY start_deadline, rowid
    LIMIT ?3
) AS overdue
LIMIT ?3
