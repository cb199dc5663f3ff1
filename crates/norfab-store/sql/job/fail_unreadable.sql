-- Rows that cannot be read as jobs become FAILED (?1 row numbers, ?2 when, ?3 the same as ctime()), or they would come up
-- in every pass. Returns the schedule of each.
UPDATE jobs NOT INDEXED
SET status = 'FAILED',
    errors = change.value ->> 'errors',
    finished_at = ?2,
    completed_timestamp = ?3
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row'
    AND jobs.status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
RETURNING schedule_id AS "schedule_id!: Cell"
