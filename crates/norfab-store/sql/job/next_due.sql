-- The nearest instants at which a pass has something to do, two index entries each. What is no instant counts as the epoch:
-- behind the year 9999, or no number, here; before the year 1 where this is read. The lower bounds make the planner seek.
SELECT
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_due
            WHERE status = 'SCHEDULED' AND scheduled_for >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT scheduled_for FROM jobs INDEXED BY jobs_due
            WHERE status = 'SCHEDULED' AND scheduled_for >= -9e999
            ORDER BY scheduled_for LIMIT 1
        )
    END AS "release!: Cell",
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_overdue
            WHERE status = 'SCHEDULED' AND start_deadline >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT start_deadline FROM jobs INDEXED BY jobs_overdue
            WHERE status = 'SCHEDULED' AND start_deadline >= -9e999
            ORDER BY start_deadline LIMIT 1
        )
    END AS "miss!: Cell",
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_unsent_to_expire
            WHERE status = 'NEW'
                AND max(deadline, ifnull(next_attempt_at, 0)) >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT max(deadline, ifnull(next_attempt_at, 0)) FROM jobs INDEXED BY jobs_unsent_to_expire
            WHERE status = 'NEW'
                AND max(deadline, ifnull(next_attempt_at, 0)) >= -9e999
            ORDER BY max(deadline, ifnull(next_attempt_at, 0)) LIMIT 1
        )
    END AS "expire_unsent!: Cell",
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_to_expire
            WHERE status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
                AND max(deadline, ifnull(next_attempt_at, 0)) >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT max(deadline, ifnull(next_attempt_at, 0)) FROM jobs INDEXED BY jobs_to_expire
            WHERE status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
                AND max(deadline, ifnull(next_attempt_at, 0)) >= -9e999
            ORDER BY max(deadline, ifnull(next_attempt_at, 0)) LIMIT 1
        )
    END AS "expire!: Cell",
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_to_send
            WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT ifnull(next_attempt_at, 0) FROM jobs INDEXED BY jobs_to_send
            WHERE status = 'NEW' AND ifnull(next_attempt_at, 0) >= -9e999
            ORDER BY ifnull(next_attempt_at, 0) LIMIT 1
        )
    END AS "send!: Cell",
    CASE
        WHEN EXISTS (
            SELECT 1 FROM jobs INDEXED BY jobs_to_poll
            WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
                AND ifnull(last_poll_timestamp, 0) >= 253402300800
        ) THEN 0.0
        ELSE (
            SELECT ifnull(last_poll_timestamp, 0) FROM jobs INDEXED BY jobs_to_poll
            WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
                AND ifnull(last_poll_timestamp, 0) >= -9e999
            ORDER BY ifnull(last_poll_timestamp, 0) LIMIT 1
        )
    END AS "polled!: Cell"
