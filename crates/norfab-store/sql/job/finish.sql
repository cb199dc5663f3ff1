-- Jobs end without having been sent: MISSED, CANCELLED or FAILED.
-- The fields of row N of the rows (?1) lie in ?2, 31 numbers of 20 digits each in the order of `ChangedJobs` (encode.rs), the
-- smallest number of all for NULL, their texts in ?3.
UPDATE jobs NOT INDEXED
SET status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 221, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 241, 20) AS INTEGER)) AS TEXT),
    errors = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 461, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 481, 20) AS INTEGER)) AS TEXT),
    finished_at = nullif(CAST(substr(?2, change.key * 620 + 161, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    completed_timestamp = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 541, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 561, 20) AS INTEGER)) AS TEXT),
    next_attempt_at = NULL
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 181, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 201, 20) AS INTEGER)) AS TEXT)
