-- NEW jobs become SUBMITTING, with the target that they are sent to.
UPDATE jobs NOT INDEXED
SET status = 'SUBMITTING',
    -- One that runs already stays as it is: another program's may lie between two microseconds.
    deadline = CASE
        WHEN next_attempt_at IS NULL AND typeof(deadline) IN ('real', 'integer') THEN deadline
        ELSE (change.value ->> 'deadline') / 1000000.0
    END,
    dispatch_target = change.value ->> 'dispatch_target',
    posts_sent = change.value ->> 'posts_sent',
    next_attempt_at = NULL,
    last_poll_timestamp = (change.value ->> 'last_poll') / 1000000.0
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = 'NEW'
