-- Adds events (?1, their data cut out of ?2) in their order, and returns their numbers.
INSERT INTO events (job_uuid, message, severity, task, event_data, created_at)
SELECT
    new.value ->> 'job_uuid',
    new.value ->> 'message',
    new.value ->> 'severity',
    new.value ->> 'task',
    substr(?2, new.value ->> 'data_at', new.value ->> 'data_bytes'),
    new.value ->> 'created_at'
FROM json_each(?1) AS new
ORDER BY new.key
RETURNING id AS "id!: i64"
