-- Adds jobs of schedules (?1: their UUIDs) with what the schedules run, in their order, and returns the UUIDs of those that
-- were not there already. The fields of row N lie in ?2, 11 numbers of 20 digits each, the smallest of all for NULL: the row
-- of the schedule, deadline, scheduled for, start deadline, added, released, finished; then where status and origin lie in ?3
-- and how long they are. ?4 is when they are added, ?5 the same as ctime(). Joined in this order, the list is walked as it
-- stands; sorting it would carry the arguments along.
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
    nullif(CAST(substr(?2, new.key * 220 + 21, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    CAST(substr(?3, CAST(substr(?2, new.key * 220 + 141, 20) AS INTEGER), CAST(substr(?2, new.key * 220 + 161, 20) AS INTEGER)) AS TEXT),
    job_schedules.workers,
    ?4,
    ?4,
    CASE WHEN nullif(CAST(substr(?2, new.key * 220 + 121, 20) AS INTEGER), -9223372036854775808) IS NOT NULL THEN ?5 END,
    nullif(CAST(substr(?2, new.key * 220 + 41, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 220 + 61, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    job_schedules.uuid,
    CAST(substr(?3, CAST(substr(?2, new.key * 220 + 181, 20) AS INTEGER), CAST(substr(?2, new.key * 220 + 201, 20) AS INTEGER)) AS TEXT),
    nullif(CAST(substr(?2, new.key * 220 + 81, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 220 + 101, 20) AS INTEGER), -9223372036854775808) / 1000000.0,
    nullif(CAST(substr(?2, new.key * 220 + 121, 20) AS INTEGER), -9223372036854775808) / 1000000.0
FROM json_each(?1) AS new CROSS JOIN job_schedules
WHERE job_schedules.rowid = CAST(substr(?2, new.key * 220 + 1, 20) AS INTEGER)
ON CONFLICT DO NOTHING
RETURNING uuid AS "uuid!: String"
