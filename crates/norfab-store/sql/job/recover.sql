-- Claims of an earlier process are taken back.
UPDATE jobs INDEXED BY idx_jobs_status
SET status = 'NEW', next_attempt_at = NULL
WHERE status = 'SUBMITTING'
