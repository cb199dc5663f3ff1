-- What replies, a passed deadline or the lack of a worker change in jobs.
-- The fields of row N of the rows (?1) lie in ?2, 31 numbers of 20 digits each in the order of `ChangedJobs` (encode.rs), the
-- smallest number of all for NULL, their texts in ?3.
UPDATE jobs NOT INDEXED
SET status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 221, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 241, 20) AS INTEGER)) AS TEXT),
    -- It moves with another attempt only: another program's may lie between two microseconds.
    deadline = CASE
        WHEN CAST(substr(?2, change.key * 620 + 101, 20) AS INTEGER) = -9223372036854775808 THEN deadline
        ELSE nullif(CAST(substr(?2, change.key * 620 + 1, 20) AS INTEGER), -9223372036854775808) / 1000000.0
    END,
    dispatch_target = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 261, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 281, 20) AS INTEGER)) AS TEXT),
    workers_dispatched = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 301, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 321, 20) AS INTEGER)) AS TEXT),
    workers_started = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 341, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 361, 20) AS INTEGER)) AS TEXT),
    workers_completed = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 381, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 401, 20) AS INTEGER)) AS TEXT),
    pending_inputs = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 421, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 441, 20) AS INTEGER)) AS TEXT),
    result_data = CASE
        WHEN CAST(substr(?2, change.key * 620 + 581, 20) AS INTEGER) = -9223372036854775808 THEN result_data
        ELSE substr(?3, CAST(substr(?2, change.key * 620 + 581, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 601, 20) AS INTEGER))
    END,
    errors = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 461, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 481, 20) AS INTEGER)) AS TEXT),
    posts_sent = CAST(substr(?2, change.key * 620 + 61, 20) AS INTEGER),
    posts_refused = CAST(substr(?2, change.key * 620 + 81, 20) AS INTEGER),
    -- What was NEW, and may have been sent by an earlier claim, is asked for.
    last_poll_timestamp = CASE WHEN jobs.status = 'NEW' AND CAST(substr(?3, CAST(substr(?2, change.key * 620 + 221, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 241, 20) AS INTEGER)) AS TEXT) = 'DISPATCHED' THEN 0 ELSE last_poll_timestamp END,
    next_attempt_at = nullif(CAST(substr(?2, change.key * 620 + 101, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    started_at = ifnull(started_at, nullif(CAST(substr(?2, change.key * 620 + 141, 20) AS INTEGER), -9223372036854775808) / 1000000.0),
    started_timestamp = ifnull(started_timestamp, CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 501, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 521, 20) AS INTEGER)) AS TEXT)),
    finished_at = ifnull(finished_at, nullif(CAST(substr(?2, change.key * 620 + 161, 20) AS INTEGER), -9223372036854775808) / 1000000.0),
    completed_timestamp = ifnull(completed_timestamp, CAST(substr(?3, nullif(CAST(substr(?2, change.key * 620 + 541, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 620 + 561, 20) AS INTEGER)) AS TEXT))
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value AND jobs.status = CAST(substr(?3, CAST(substr(?2, change.key * 620 + 181, 20) AS INTEGER), CAST(substr(?2, change.key * 620 + 201, 20) AS INTEGER)) AS TEXT)
