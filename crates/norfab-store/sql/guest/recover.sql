-- The same as job/recover.sql for these jobs (?1; now: ?2).
UPDATE jobs
SET status = 'NEW', next_attempt_at = NULL, posts_sent = max(ifnull(posts_sent, 0), 1)
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'SUBMITTING'
    AND ifnull(start_deadline, ?2) >= ?2 AND ifnull(deadline > ?2, 1)
