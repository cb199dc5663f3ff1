-- The active schedules that are due after ?1, the earliest first.
SELECT rowid AS "row!: i64"
FROM job_schedules INDEXED BY schedules_due
WHERE state = 'ACTIVE' AND next_due_at > ?1 AND next_due_at < 1e300
ORDER BY next_due_at, rowid
