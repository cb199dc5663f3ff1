-- NEW jobs become SUBMITTING, with the target that they are sent to.
-- The fields of row N of the rows (?1) lie in ?2, 31 numbers of 20 digits each in the order of `ChangedJobs` (encode.rs), the
-- smallest number of all for NULL, their texts in ?3.
UPDATE jobs NOT INDEXED
SET status = 'SUBMITTING',
    -- One that runs already stays as it is: another program's may lie between two microseconds.
    deadline = CASE
        WHEN next_attempt_at IS NULL AND typeof(deadline) IN ('real', 'integer') THEN deadline
        ELSE nullif(CAST(substr(?2, change.key * 620 + 1, 20) AS INTEGER), -9223372036854775808) / 1000000.0
    END,
    dispatch_target = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 261, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 281, 20) AS INTEGER)) AS TEXT),
    posts_sent = CAST(substr(?2, change.key * 620 + 61, 20) AS INTEGER),
    next_attempt_at = NULL,
    last_poll_timestamp = nullif(CAST(substr(?2, change.key * 620 + 121, 20) AS INTEGER), -9223372036854775808) / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = 'NEW'
