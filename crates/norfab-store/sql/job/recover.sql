-- Claims of an earlier process are taken back, of jobs that may still start (now: ?1) and whose deadline has not passed.
UPDATE jobs INDEXED BY idx_jobs_status
SET status = 'NEW', next_attempt_at = NULL
WHERE status = 'SUBMITTING' AND ifnull(start_deadline, ?1) >= ?1 AND ifnull(deadline > ?1, 1)
