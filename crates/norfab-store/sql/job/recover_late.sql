-- The other claims of an earlier process may have been sent: they are asked for and not sent again.
UPDATE jobs INDEXED BY idx_jobs_status
SET status = 'DISPATCHED', next_attempt_at = NULL, posts_sent = max(ifnull(posts_sent, 0), 1)
WHERE status = 'SUBMITTING'
