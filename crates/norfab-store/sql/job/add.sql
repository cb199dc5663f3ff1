-- Adds jobs (?1: UUIDs) in their order, and returns the UUIDs that were not there already. The fields of row N lie in ?2, 22
-- numbers of 20 digits each, the smallest of all for NULL, their texts and payloads in ?3.
INSERT INTO jobs (
    uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, received_timestamp, created_at,
    scheduled_for, start_deadline, origin, added_at, released_at
)
SELECT
    new.value,
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 201, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 221, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 241, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 261, 20) AS INTEGER)) AS TEXT),
    substr(?3, CAST(substr(?2, new.key * 440 + 121, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 141, 20) AS INTEGER)),
    substr(?3, CAST(substr(?2, new.key * 440 + 161, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 181, 20) AS INTEGER)),
    CAST(substr(?2, new.key * 440 + 1, 20) AS INTEGER),
    nullif(CAST(substr(?2, new.key * 440 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 281, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 301, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 321, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 341, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 361, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 381, 20) AS INTEGER)) AS TEXT),
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 361, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 381, 20) AS INTEGER)) AS TEXT),
    nullif(CAST(substr(?2, new.key * 440 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 440 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    CAST(substr(?3, CAST(substr(?2, new.key * 440 + 401, 20) AS INTEGER), CAST(substr(?2, new.key * 440 + 421, 20) AS INTEGER)) AS TEXT),
    nullif(CAST(substr(?2, new.key * 440 + 81, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 440 + 101, 20) AS INTEGER), -9223372036854775808) / 1000000.0
FROM json_each(?1) AS new
WHERE true
ORDER BY new.key
ON CONFLICT (uuid) DO NOTHING
RETURNING uuid AS "uuid!: String"
