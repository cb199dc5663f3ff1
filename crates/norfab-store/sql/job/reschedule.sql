-- Delayed jobs get another time.
UPDATE jobs NOT INDEXED
SET scheduled_for = (change.value ->> 'scheduled_for') / 1000000.0,
    start_deadline = (change.value ->> 'start_deadline') / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = 'SCHEDULED'
