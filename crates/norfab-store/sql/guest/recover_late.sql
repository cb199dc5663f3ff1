-- The same as job/recover_late.sql for these jobs (?1).
UPDATE jobs
SET status = 'DISPATCHED', next_attempt_at = NULL, posts_sent = max(ifnull(posts_sent, 0), 1)
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'SUBMITTING'
