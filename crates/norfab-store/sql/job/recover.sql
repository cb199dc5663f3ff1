-- Claims of an earlier process are taken back, of jobs that may still start (now: ?1) and whose deadline has not passed.
-- One of another program counts for one.
UPDATE jobs INDEXED BY idx_jobs_status
SET status = 'NEW', next_attempt_at = NULL, posts_sent = max(ifnull(posts_sent, 0), 1)
WHERE status = 'SUBMITTING' AND ifnull(start_deadline, ?1) >= ?1 AND ifnull(deadline > ?1, 1)
