-- What else of these jobs (?1) is in flight counts as never asked for; what has no deadline gets one (?2).
UPDATE jobs
SET last_poll_timestamp = 0, deadline = ifnull(deadline, ?2)
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
