-- Moves active schedules (?1) on whose next occurrence, and no other, has become a job: it is decided and was the last to
-- run, and what came of it is ?3. The fields of row N lie in ?2, 2 numbers of 20 digits each: next run, next due. Should a
-- rule of the table refuse one, those before it are undone with the transaction.
UPDATE OR FAIL job_schedules NOT INDEXED
SET decided_until = job_schedules.next_run_at,
    decided_at = job_schedules.next_run_at,
    last_run_at = job_schedules.next_run_at,
    next_run_at = CAST(substr(?2, change.key * 40 + 1, 20) AS INTEGER) / 1000000.0,
    next_due_at = CAST(substr(?2, change.key * 40 + 21, 20) AS INTEGER) / 1000000.0,
    total_runs = job_schedules.total_runs + 1,
    last_outcome = ?3
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value AND job_schedules.state = 'ACTIVE'
