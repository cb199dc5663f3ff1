-- Adds jobs (?1, their payloads cut out of ?2) in their order, and returns the UUIDs that were not there already.
INSERT INTO jobs (
    uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, received_timestamp, created_at,
    scheduled_for, start_deadline, origin, added_at, released_at
)
SELECT
    new.value ->> 'uuid',
    new.value ->> 'service',
    new.value ->> 'task',
    substr(?2, new.value ->> 'args_at', new.value ->> 'args_bytes'),
    substr(?2, new.value ->> 'kwargs_at', new.value ->> 'kwargs_bytes'),
    new.value ->> 'timeout',
    (new.value ->> 'deadline') / 1000000.0,
    new.value ->> 'status',
    new.value ->> 'workers_requested',
    new.value ->> 'local_time',
    new.value ->> 'local_time',
    (new.value ->> 'scheduled_for') / 1000000.0,
    (new.value ->> 'start_deadline') / 1000000.0,
    new.value ->> 'origin',
    (new.value ->> 'added_at') / 1000000.0,
    (new.value ->> 'released_at') / 1000000.0
FROM json_each(?1) AS new
WHERE true
ORDER BY new.key
ON CONFLICT (uuid) DO NOTHING
RETURNING uuid AS "uuid!: String"
