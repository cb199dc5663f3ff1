-- The earliest due time of an active schedule, one index entry; the bounds below and above all instants leave out what is none.
SELECT next_due_at AS "next_due_at!: Cell"
FROM job_schedules INDEXED BY schedules_due
WHERE state = 'ACTIVE' AND next_due_at > -1e300 AND next_due_at < 1e300
ORDER BY next_due_at
LIMIT 1
