-- The active schedules that are due (?1), the earliest first, at most ?3 of them, without those of ?2; and those whose
-- due time is no instant, which would never come up: none, behind the year 9999, or no number.
SELECT "row" AS "row!: i64"
FROM (
    SELECT rowid AS "row"
    FROM job_schedules INDEXED BY schedules_due
    WHERE state = 'ACTIVE' AND next_due_at <= ?1
        -- By row numbers, which are in the index: for their UUIDs, all due rows would be looked at. With an empty
        -- list, the table that NOT IN needs is not made.
        AND (?2 = '[]' OR rowid NOT IN (
            SELECT seen.rowid FROM json_each(?2) AS list CROSS JOIN job_schedules AS seen ON seen.uuid = list.value
        ))
    ORDER BY next_due_at, next_run_at, rowid
    LIMIT ?3
)
UNION ALL
SELECT "row"
FROM (
    SELECT rowid AS "row"
    FROM job_schedules INDEXED BY schedules_due
    WHERE state = 'ACTIVE' AND next_due_at IS NULL
    LIMIT ?3
)
UNION ALL
SELECT "row"
FROM (
    SELECT rowid AS "row"
    FROM job_schedules INDEXED BY schedules_due
    WHERE state = 'ACTIVE' AND next_due_at >= 253402300800
    LIMIT ?3
)
LIMIT ?3
