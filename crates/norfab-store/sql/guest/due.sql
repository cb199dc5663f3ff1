-- The same as job/due.sql for these jobs (?1), at most ?4 of them: due at ?2, to start before ?3.
SELECT rowid AS "row!: i64" FROM jobs
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'SCHEDULED'
    AND (scheduled_for >= 253402300800 OR start_deadline >= 253402300800 OR scheduled_for <= ?2 OR start_deadline < ?3)
ORDER BY scheduled_for, rowid
LIMIT ?4
