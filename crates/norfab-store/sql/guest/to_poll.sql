-- The same as job/to_poll.sql for these jobs (?1): last asked for at ?2 or earlier, at most ?3 of them.
SELECT rowid AS "row!: i64" FROM jobs
WHERE uuid IN (SELECT value FROM json_each(?1))
    AND +status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND (ifnull(last_poll_timestamp, 0) <= ?2 OR ifnull(last_poll_timestamp, 0) >= 253402300800)
ORDER BY ifnull(last_poll_timestamp, 0) < 253402300800, ifnull(last_poll_timestamp, 0), rowid
LIMIT ?3
