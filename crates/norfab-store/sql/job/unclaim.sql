-- Claims of jobs (?1) whose messages never left are taken back. A job that was never sent before has no target yet.
UPDATE jobs
SET status = 'NEW',
    posts_sent = max(ifnull(posts_sent, 0) - 1, 0),
    dispatch_target = CASE WHEN posts_sent > 1 THEN dispatch_target END,
    next_attempt_at = NULL,
    last_poll_timestamp = NULL
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'SUBMITTING'
