-- Delayed jobs (?1 row numbers) become NEW, and their deadline begins to run. The fields of row N lie in ?2, two numbers of 20
-- digits each: the deadline, and when they are released.
UPDATE jobs NOT INDEXED
SET status = 'NEW',
    deadline = nullif(CAST(substr(?2, change.key * 40 + 1, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    released_at = nullif(CAST(substr(?2, change.key * 40 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = 'SCHEDULED'
