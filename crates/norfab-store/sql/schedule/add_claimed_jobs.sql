-- Adds jobs of schedules (?1: their UUIDs) that are claimed at once, with what the schedules run, in their order, unless they
-- are there already: as `add_jobs.sql` and `job/claim.sql` would leave them one after the other. The fields of row N lie in
-- ?2, 6 numbers of 20 digits each, the smallest of all for NULL: the row of the schedule, deadline, scheduled for, start
-- deadline, and in ?3 the target: where it lies and its length. They are added and claimed at ?4, which is ?5 in local time;
-- ?6 is their origin.
INSERT INTO jobs (
    uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, received_timestamp, created_at,
    scheduled_for, start_deadline, schedule_id, origin, added_at, released_at, dispatch_target, posts_sent,
    last_poll_timestamp
)
SELECT
    new.value,
    job_schedules.service,
    job_schedules.task,
    job_schedules.args,
    job_schedules.kwargs,
    job_schedules.timeout,
    nullif(CAST(substr(?2, new.key * 120 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    'SUBMITTING',
    job_schedules.workers,
    ?5,
    ?5,
    nullif(CAST(substr(?2, new.key * 120 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 120 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    job_schedules.uuid,
    ?6,
    ?4,
    ?4,
    CAST(substr(
        ?3, CAST(substr(?2, new.key * 120 + 81, 20) AS INTEGER), CAST(substr(?2, new.key * 120 + 101, 20) AS INTEGER)
    ) AS TEXT),
    1,
    ?4
FROM json_each(?1) AS new CROSS JOIN job_schedules
WHERE job_schedules.rowid = CAST(substr(?2, new.key * 120 + 1, 20) AS INTEGER)
ON CONFLICT DO NOTHING
