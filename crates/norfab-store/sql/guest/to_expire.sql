-- The same as job/to_expire.sql for these jobs (?1): whose deadline has passed (?2), at most ?3 of them, those that are NEW
-- only (?4) or those in flight too.
SELECT rowid AS "row!: i64", ifnull(octet_length(result_data), 0) AS "bytes!: i64"
FROM jobs
WHERE uuid IN (SELECT value FROM json_each(?1))
    AND +status IN ('NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND (status = 'NEW' OR NOT ?4)
    AND (
        max(deadline, ifnull(next_attempt_at, 0)) <= ?2
        OR max(deadline, ifnull(next_attempt_at, 0)) >= 253402300800
    )
ORDER BY status <> 'NEW', max(deadline, ifnull(next_attempt_at, 0)), rowid
LIMIT ?3
