-- The same as job/to_claim.sql for these jobs (?1): to be sent now (?2), at most ?3 of them.
SELECT rowid AS "row!: i64", ifnull(octet_length(args), 0) + ifnull(octet_length(kwargs), 0) AS "bytes!: i64"
FROM jobs
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'NEW'
    AND (ifnull(next_attempt_at, 0) <= ?2 OR ifnull(next_attempt_at, 0) >= 253402300800)
ORDER BY ifnull(next_attempt_at, 0) < 253402300800, ifnull(next_attempt_at, 0), rowid
LIMIT ?3
