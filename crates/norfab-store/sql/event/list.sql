-- The events of a job (?1) behind number ?2, in their order, at most ?3 of them.
SELECT
    id AS "id!: i64",
    message AS "message!: Cell",
    severity AS "severity!: Cell",
    task AS "task!: Cell",
    event_data AS "data!: Cell",
    CAST(strftime('%s', created_at) AS INTEGER) AS "created_at!: Cell"
FROM events INDEXED BY idx_events_job_uuid
WHERE job_uuid = ?1 AND id > ?2
ORDER BY id
LIMIT ?3
