-- The NEW jobs that may be sent now (?1), at most ?2 of them, with the size of their payloads: before the others those
-- whose next attempt is at no instant, then the oldest, then those that were sent before.
SELECT rowid AS "row!: i64", ifnull(octet_length(args), 0) + ifnull(octet_length(kwargs), 0) AS "bytes!: i64"
FROM jobs INDEXED BY jobs_to_send
WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) >= 253402300800
UNION ALL
SELECT * FROM (
    SELECT rowid, ifnull(octet_length(args), 0) + ifnull(octet_length(kwargs), 0)
    FROM jobs INDEXED BY jobs_to_send
    WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) <= ?1
    ORDER BY ifnull(next_attempt_at, 0), rowid
    LIMIT ?2
) AS due
LIMIT ?2
