-- Delayed jobs get another time.
-- The fields of row N of the rows (?1) lie in ?2, 31 numbers of 20 digits each in the order of `ChangedJobs` (encode.rs), the
-- smallest number of all for NULL.
UPDATE jobs NOT INDEXED
SET scheduled_for = nullif(CAST(substr(?2, change.key * 620 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    start_deadline = nullif(CAST(substr(?2, change.key * 620 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = 'SCHEDULED'
