-- The earliest due time of an active schedule, one index entry. What is no instant counts as the epoch: none, behind the
-- year 9999, or no number, here; before the year 1 where this is read. The lower bound makes the planner seek.
SELECT
    CASE
        WHEN EXISTS (
            SELECT 1 FROM job_schedules INDEXED BY schedules_due
            WHERE state = 'ACTIVE' AND next_due_at IS NULL
        ) THEN 0.0
        WHEN EXISTS (
            SELECT 1 FROM job_schedules INDEXED BY schedules_due
            WHERE state = 'ACTIVE' AND next_due_at >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT next_due_at FROM job_schedules INDEXED BY schedules_due
            WHERE state = 'ACTIVE' AND next_due_at >= -9e999
            ORDER BY next_due_at LIMIT 1
        )
    END AS "due!: Cell"
