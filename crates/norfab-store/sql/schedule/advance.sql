-- Moves active schedules (?1) on of which an occurrence has become a job, and nothing else is to be told but how many it
-- stands for. The fields of row N lie in ?2, 6 numbers of 20 digits each: next run, next due, the occurrence, how many
-- coalesced ones there are now; then where the last outcome lies in ?3 and how long it is.
UPDATE job_schedules NOT INDEXED
SET next_run_at = CAST(substr(?2, change.key * 120 + 1, 20) AS INTEGER) / 1000000.0,
    next_due_at = CAST(substr(?2, change.key * 120 + 21, 20) AS INTEGER) / 1000000.0,
    decided_until = CAST(substr(?2, change.key * 120 + 41, 20) AS INTEGER) / 1000000.0,
    decided_at = CAST(substr(?2, change.key * 120 + 41, 20) AS INTEGER) / 1000000.0,
    last_run_at = CAST(substr(?2, change.key * 120 + 41, 20) AS INTEGER) / 1000000.0,
    total_runs = total_runs + 1,
    coalesced_runs = CAST(substr(?2, change.key * 120 + 61, 20) AS INTEGER),
    last_outcome = CAST(substr(?3, CAST(substr(?2, change.key * 120 + 81, 20) AS INTEGER), CAST(substr(?2, change.key * 120 + 101, 20) AS INTEGER)) AS TEXT)
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value AND job_schedules.state = 'ACTIVE'
