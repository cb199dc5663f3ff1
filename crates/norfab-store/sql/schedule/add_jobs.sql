-- Adds jobs of schedules (?1) with what the schedules run, in their order, and returns the UUIDs of those that were not
-- there already. Joined in this order, the list is walked as it stands; sorting it would carry the arguments along.
INSERT INTO jobs (
    uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, received_timestamp, created_at,
    completed_timestamp, scheduled_for, start_deadline, schedule_id, origin, added_at, released_at, finished_at
)
SELECT
    new.value ->> 'uuid',
    job_schedules.service,
    job_schedules.task,
    job_schedules.args,
    job_schedules.kwargs,
    job_schedules.timeout,
    (new.value ->> 'deadline') / 1000000.0,
    new.value ->> 'status',
    job_schedules.workers,
    new.value ->> 'local_time',
    new.value ->> 'local_time',
    new.value ->> 'completed_timestamp',
    (new.value ->> 'scheduled_for') / 1000000.0,
    (new.value ->> 'start_deadline') / 1000000.0,
    job_schedules.uuid,
    new.value ->> 'origin',
    (new.value ->> 'added_at') / 1000000.0,
    (new.value ->> 'released_at') / 1000000.0,
    (new.value ->> 'finished_at') / 1000000.0
FROM json_each(?1) AS new CROSS JOIN job_schedules
WHERE job_schedules.rowid = new.value ->> 'schedule'
ON CONFLICT DO NOTHING
RETURNING uuid AS "uuid!: String"
