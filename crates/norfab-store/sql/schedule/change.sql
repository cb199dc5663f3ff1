-- Writes what calls and passes make of schedules (?1): state, cursor, counters and what is told of them. The fields of row N
-- lie in ?2, 25 numbers of 20 digits each, the smallest of all for NULL: what is expected (revision, next run), next run,
-- next due, decided until, last run, updated, five counters, whether the zone data is told, zone offset; then where texts lie
-- in ?3 and how long they are: zone data, expected state, state, last error, last outcome; last, from when on that is decided.
UPDATE job_schedules NOT INDEXED
SET state = CAST(substr(?3, CAST(substr(?2, change.key * 500 + 361, 20) AS INTEGER), CAST(substr(?2, change.key * 500 + 381, 20) AS INTEGER)) AS TEXT),
    next_run_at = nullif(CAST(substr(?2, change.key * 500 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    next_due_at = nullif(CAST(substr(?2, change.key * 500 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    decided_until = CAST(substr(?2, change.key * 500 + 81, 20) AS INTEGER) / 1000000.0,
    decided_at = CAST(substr(?2, change.key * 500 + 481, 20) AS INTEGER) / 1000000.0,
    zone_data = CASE
        WHEN CAST(substr(?2, change.key * 500 + 241, 20) AS INTEGER) THEN CAST(substr(?3, nullif(CAST(substr(?2, change.key * 500 + 281, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 500 + 301, 20) AS INTEGER)) AS TEXT)
        ELSE zone_data
    END,
    zone_offset = CASE
        WHEN CAST(substr(?2, change.key * 500 + 241, 20) AS INTEGER) THEN nullif(CAST(substr(?2, change.key * 500 + 261, 20) AS INTEGER), -9223372036854775808)
        ELSE zone_offset
    END,
    last_run_at = nullif(CAST(substr(?2, change.key * 500 + 101, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    updated_at = CAST(substr(?2, change.key * 500 + 121, 20) AS INTEGER) / 1000000.0,
    total_runs = CAST(substr(?2, change.key * 500 + 141, 20) AS INTEGER),
    missed_runs = CAST(substr(?2, change.key * 500 + 161, 20) AS INTEGER),
    overlap_skips = CAST(substr(?2, change.key * 500 + 181, 20) AS INTEGER),
    coalesced_runs = CAST(substr(?2, change.key * 500 + 201, 20) AS INTEGER),
    passed_over = CAST(substr(?2, change.key * 500 + 221, 20) AS INTEGER),
    last_error = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 500 + 401, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 500 + 421, 20) AS INTEGER)) AS TEXT),
    last_outcome = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 500 + 441, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 500 + 461, 20) AS INTEGER)) AS TEXT)
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value
    AND job_schedules.revision = CAST(substr(?2, change.key * 500 + 1, 20) AS INTEGER)
    AND job_schedules.state = CAST(substr(?3, CAST(substr(?2, change.key * 500 + 321, 20) AS INTEGER), CAST(substr(?2, change.key * 500 + 341, 20) AS INTEGER)) AS TEXT)
    -- The cursor as it was read. Instants of other programs may lie between two microseconds.
    AND (next_run_at IS NULL) = (nullif(CAST(substr(?2, change.key * 500 + 21, 20) AS INTEGER), -9223372036854775808) IS NULL)
    AND ifnull(abs(next_run_at - nullif(CAST(substr(?2, change.key * 500 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0) < 0.000002, true)
