-- Adds jobs of schedules (?1: their UUIDs) with what the schedules run, in their order, unless they are there already. The
-- fields of row N lie in ?2, 5 numbers of 20 digits each, the smallest of all for NULL: the row of the schedule, deadline,
-- scheduled for, start deadline, and whether it is missed. They are added at ?3, which is ?4 in local time and ?5 as ctime()
-- writes it; ?6 is their origin. Joined in this order, the list is walked as it stands; sorting it would carry the arguments
-- along.
INSERT INTO jobs (
    uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, received_timestamp, created_at,
    completed_timestamp, scheduled_for, start_deadline, schedule_id, origin, added_at, released_at, finished_at
)
SELECT
    new.value,
    job_schedules.service,
    job_schedules.task,
    job_schedules.args,
    job_schedules.kwargs,
    job_schedules.timeout,
    nullif(CAST(substr(?2, new.key * 100 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    CASE WHEN substr(?2, new.key * 100 + 100, 1) = x'31' THEN 'MISSED' ELSE 'NEW' END,
    job_schedules.workers,
    ?4,
    ?4,
    CASE WHEN substr(?2, new.key * 100 + 100, 1) = x'31' THEN ?5 END,
    nullif(CAST(substr(?2, new.key * 100 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 100 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    job_schedules.uuid,
    ?6,
    ?3,
    CASE WHEN substr(?2, new.key * 100 + 100, 1) <> x'31' THEN ?3 END,
    CASE WHEN substr(?2, new.key * 100 + 100, 1) = x'31' THEN ?3 END
FROM json_each(?1) AS new CROSS JOIN job_schedules
WHERE job_schedules.rowid = CAST(substr(?2, new.key * 100 + 1, 20) AS INTEGER)
ON CONFLICT DO NOTHING
