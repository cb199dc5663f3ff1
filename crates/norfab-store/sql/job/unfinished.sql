-- The jobs that have not ended, the oldest first, at most ?1 of them.
SELECT rowid AS "row!: i64"
FROM jobs INDEXED BY idx_jobs_status
WHERE status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
ORDER BY rowid
LIMIT ?1
