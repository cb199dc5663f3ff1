-- Adds jobs of schedules (?1: their UUIDs) with what the schedules run, in their order, unless they are there already. The
-- fields of row N lie in ?2, 4 numbers of 20 digits each, the smallest of all for NULL: the row of the schedule, deadline,
-- scheduled for, start deadline. They are added at ?3, which is ?4 in local time; ?5 is their origin, ?6 their status. If
-- they are to run, ?7 is when they were released; if they have ended already, ?8 is when, and ?9 the same as ctime() writes
-- it. Joined in this order, the list is walked as it stands; sorting it would carry the arguments along.
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
    nullif(CAST(substr(?2, new.key * 80 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    ?6,
    job_schedules.workers,
    ?4,
    ?4,
    ?9,
    nullif(CAST(substr(?2, new.key * 80 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 80 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    job_schedules.uuid,
    ?5,
    ?3,
    ?7,
    ?8
FROM json_each(?1) AS new CROSS JOIN job_schedules
WHERE job_schedules.rowid = CAST(substr(?2, new.key * 80 + 1, 20) AS INTEGER)
ON CONFLICT DO NOTHING
