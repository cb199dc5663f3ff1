-- Claims of these jobs (?1) by an earlier process are taken back.
UPDATE jobs
SET status = 'NEW', next_attempt_at = NULL
WHERE uuid IN (SELECT value FROM json_each(?1)) AND +status = 'SUBMITTING'
