-- Writes what calls and passes make of schedules (?1): state, cursor, counters and what is told of them. The fields of row N
-- lie in ?2, 24 numbers of 20 digits each, the smallest of all for NULL: what is expected (revision, next run), next run,
-- next due, decided until, last run, updated, five counters, whether the zone data is told, zone offset; then where texts lie
-- in ?3 and how long they are: zone data, expected state, state, last error, last outcome.
UPDATE job_schedules NOT INDEXED
SET state = CAST(substr(?3, CAST(substr(?2, change.key * 480 + 361, 20) AS INTEGER), CAST(substr(?2, change.key * 480 + 381, 20) AS INTEGER)) AS TEXT),
    next_run_at = nullif(CAST(substr(?2, change.key * 480 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    next_due_at = nullif(CAST(substr(?2, change.key * 480 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    decided_until = CAST(substr(?2, change.key * 480 + 81, 20) AS INTEGER) / 1000000.0,
    zone_data = CASE
        WHEN CAST(substr(?2, change.key * 480 + 241, 20) AS INTEGER) THEN CAST(substr(?3, nullif(CAST(substr(?2, change.key * 480 + 281, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 480 + 301, 20) AS INTEGER)) AS TEXT)
        ELSE zone_data
    END,
    zone_offset = CASE
        WHEN CAST(substr(?2, change.key * 480 + 241, 20) AS INTEGER) THEN nullif(CAST(substr(?2, change.key * 480 + 261, 20) AS INTEGER), -9223372036854775808)
        ELSE zone_offset
    END,
    last_run_at = nullif(CAST(substr(?2, change.key * 480 + 101, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    updated_at = CAST(substr(?2, change.key * 480 + 121, 20) AS INTEGER) / 1000000.0,
    total_runs = CAST(substr(?2, change.key * 480 + 141, 20) AS INTEGER),
    missed_runs = CAST(substr(?2, change.key * 480 + 161, 20) AS INTEGER),
    overlap_skips = CAST(substr(?2, change.key * 480 + 181, 20) AS INTEGER),
    coalesced_runs = CAST(substr(?2, change.key * 480 + 201, 20) AS INTEGER),
    passed_over = CAST(substr(?2, change.key * 480 + 221, 20) AS INTEGER),
    last_error = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 480 + 401, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 480 + 421, 20) AS INTEGER)) AS TEXT),
    last_outcome = CAST(substr(?3, nullif(CAST(substr(?2, change.key * 480 + 441, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, change.key * 480 + 461, 20) AS INTEGER)) AS TEXT)
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value
    AND job_schedules.revision = CAST(substr(?2, change.key * 480 + 1, 20) AS INTEGER)
    AND job_schedules.state = CAST(substr(?3, CAST(substr(?2, change.key * 480 + 321, 20) AS INTEGER), CAST(substr(?2, change.key * 480 + 341, 20) AS INTEGER)) AS TEXT)
    -- The cursor as it was read. Instants of other programs may lie between two microseconds.
    AND (next_run_at IS NULL) = (nullif(CAST(substr(?2, change.key * 480 + 21, 20) AS INTEGER), -9223372036854775808) IS NULL)
    AND ifnull(abs(next_run_at - nullif(CAST(substr(?2, change.key * 480 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0) < 0.000002, true)
