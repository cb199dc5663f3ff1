-- Adds events of jobs (?1), in their order. The fields of row N lie in ?2, 10 numbers of 20 digits each, the smallest of all for
-- NULL: where in ?3 lie, and how long are, message, severity, task, data and time.
INSERT INTO events (job_uuid, message, severity, task, event_data, created_at)
SELECT
    new.value,
    CAST(substr(?3, CAST(substr(?2, new.key * 200 + 1, 20) AS INTEGER), CAST(substr(?2, new.key * 200 + 21, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, CAST(substr(?2, new.key * 200 + 41, 20) AS INTEGER), CAST(substr(?2, new.key * 200 + 61, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, nullif(CAST(substr(?2, new.key * 200 + 81, 20) AS INTEGER), -9223372036854775808), CAST(substr(?2, new.key * 200 + 101, 20) AS INTEGER)) AS TEXT),
    substr(?3, CAST(substr(?2, new.key * 200 + 121, 20) AS INTEGER), CAST(substr(?2, new.key * 200 + 141, 20) AS INTEGER)),
    CAST(substr(?3, CAST(substr(?2, new.key * 200 + 161, 20) AS INTEGER), CAST(substr(?2, new.key * 200 + 181, 20) AS INTEGER)) AS TEXT)
FROM json_each(?1) AS new
