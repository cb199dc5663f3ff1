-- The active schedules whose cursor may stand wrong at ?1, the earliest first: all that are due later, but for those of an
-- interval without jitter whose cursor lies on the grid, and at its first place to come. What is no instant comes up when it
-- is looked for what is due.
SELECT rowid AS "row!: i64"
FROM job_schedules INDEXED BY schedules_due
WHERE state = 'ACTIVE' AND next_due_at > ?1 AND next_due_at < 253402300800
    AND CASE
        WHEN trigger_type = 'interval' AND jitter_seconds = 0 AND next_run_at = next_due_at AND json_valid(trigger_config)
            THEN ifnull(
                next_run_at - (trigger_config ->> 'seconds') >= ?1 - 1.0
                OR abs(
                    next_run_at - anchor_at
                    - round((next_run_at - anchor_at) / (trigger_config ->> 'seconds')) * (trigger_config ->> 'seconds')
                ) > 0.00001,
                true
            )
        ELSE true
    END
ORDER BY next_due_at, next_run_at, rowid
