-- Claims of an earlier process are taken back.
UPDATE jobs INDEXED BY idx_jobs_status
SET status = 'NEW', next_attempt_at = NULL
WHERE status = 'SUBMITTING' AND (?1 IS NULL OR uuid IN (SELECT value FROM json_each(?1)))
