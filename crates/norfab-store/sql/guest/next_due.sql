-- The same as job/next_due.sql for these jobs (?1).
SELECT
    min(CASE WHEN scheduled THEN CASE WHEN scheduled_for >= 253402300800 THEN 0.0 ELSE scheduled_for END END)
        AS "release!: Cell",
    min(CASE WHEN scheduled THEN CASE WHEN start_deadline >= 253402300800 THEN 0.0 ELSE start_deadline END END)
        AS "miss!: Cell",
    min(CASE WHEN new THEN CASE WHEN expires_at >= 253402300800 THEN 0.0 ELSE expires_at END END)
        AS "expire_unsent!: Cell",
    min(CASE WHEN in_flight THEN CASE WHEN expires_at >= 253402300800 THEN 0.0 ELSE expires_at END END)
        AS "expire!: Cell",
    min(CASE WHEN new THEN CASE WHEN send_at >= 253402300800 THEN 0.0 ELSE send_at END END)
        AS "send!: Cell",
    min(CASE WHEN polled THEN CASE WHEN polled_at >= 253402300800 THEN 0.0 ELSE polled_at END END)
        AS "polled!: Cell"
FROM (
    SELECT
        status = 'SCHEDULED' AS scheduled,
        status = 'NEW' AS new,
        status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT') AS polled,
        status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT') AS in_flight,
        scheduled_for,
        start_deadline,
        max(deadline, ifnull(next_attempt_at, 0)) AS expires_at,
        ifnull(next_attempt_at, 0) AS send_at,
        ifnull(last_poll_timestamp, 0) AS polled_at
    FROM jobs
    WHERE uuid IN (SELECT value FROM json_each(?1))
)
