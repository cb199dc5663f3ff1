-- The active schedules that are due after ?1, the earliest first; what is no instant comes up when it is looked for what
-- is due.
SELECT rowid AS "row!: i64"
FROM job_schedules INDEXED BY schedules_due
WHERE state = 'ACTIVE' AND next_due_at > ?1 AND next_due_at < 253402300800
ORDER BY next_due_at, rowid
