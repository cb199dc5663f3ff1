-- Those of these delayed jobs (?1 row numbers) that are not NEW yet become so at ?3, whatever their timeout is: the deadline of
-- row N are the 20 digits at N * 20 of ?2.
UPDATE jobs NOT INDEXED
SET status = 'NEW',
    deadline = CAST(substr(?2, change.key * 20 + 1, 20) AS INTEGER) / 1000000.0,
    released_at = ?3
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = 'SCHEDULED'
