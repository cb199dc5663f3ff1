-- Delayed jobs become NEW, and their deadline begins to run.
UPDATE jobs NOT INDEXED
SET status = 'NEW',
    deadline = (change.value ->> 'deadline') / 1000000.0,
    released_at = (change.value ->> 'released_at') / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = 'SCHEDULED'
