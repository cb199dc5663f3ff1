-- Jobs end without having been sent: MISSED, CANCELLED or FAILED.
UPDATE jobs NOT INDEXED
SET status = change.value ->> 'status',
    errors = change.value ->> 'errors',
    finished_at = (change.value ->> 'finished_at') / 1000000.0,
    completed_timestamp = change.value ->> 'completed_timestamp',
    next_attempt_at = NULL
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = change.value ->> 'expected'
