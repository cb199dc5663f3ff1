-- The nearest instants at which a pass has something to do, one index entry each; the bound below all makes the planner seek it.
SELECT
    (
        SELECT scheduled_for FROM jobs INDEXED BY jobs_due
        WHERE status = 'SCHEDULED' AND scheduled_for IS NOT NULL
            AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
        ORDER BY scheduled_for LIMIT 1
    ) AS "release!: Cell",
    (
        SELECT start_deadline FROM jobs INDEXED BY jobs_overdue
        WHERE status = 'SCHEDULED' AND start_deadline IS NOT NULL
            AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
        ORDER BY start_deadline LIMIT 1
    ) AS "miss!: Cell",
    (
        SELECT max(deadline, ifnull(next_attempt_at, 0)) FROM jobs INDEXED BY jobs_to_expire
        WHERE status IN ('NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
            AND max(deadline, ifnull(next_attempt_at, 0)) > -1e300
            AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
        ORDER BY max(deadline, ifnull(next_attempt_at, 0)) LIMIT 1
    ) AS "expire!: Cell",
    (
        SELECT ifnull(next_attempt_at, 0) FROM jobs INDEXED BY jobs_to_send
        WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) > -1e300
            AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
        ORDER BY ifnull(next_attempt_at, 0) LIMIT 1
    ) AS "send!: Cell",
    (
        SELECT ifnull(last_poll_timestamp, 0) FROM jobs INDEXED BY jobs_to_poll
        WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT') AND ifnull(last_poll_timestamp, 0) > -1e300
            AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
        ORDER BY ifnull(last_poll_timestamp, 0) LIMIT 1
    ) AS "polled!: Cell"
