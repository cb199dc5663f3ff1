-- Jobs in flight are sent again, or asked for where they may not start any more.
-- The fields of row N of the rows (?1) lie in ?2, 31 numbers of 20 digits each in the order of `ChangedJobs` (encode.rs), the
-- smallest number of all for NULL, their texts in ?3.
UPDATE jobs NOT INDEXED
SET status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 221, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 241, 20) AS INTEGER)) AS TEXT),
    dispatch_target = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 261, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 281, 20) AS INTEGER)) AS TEXT),
    workers_dispatched = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 301, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 321, 20) AS INTEGER)) AS TEXT),
    posts_sent = CAST(substr(?2, change.key * 620 + 61, 20) AS INTEGER),
    last_poll_timestamp = ifnull(nullif(CAST(substr(?2, change.key * 620 + 121, 20) AS INTEGER), -9223372036854775808) / 1000000.0, 0)
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 181, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 201, 20) AS INTEGER)) AS TEXT)
