-- How many unfinished jobs each of these schedules (?1) has.
SELECT
    CAST(wanted.value AS TEXT) AS "schedule!: String",
    (
        SELECT count(*) FROM jobs INDEXED BY jobs_of_schedule
        WHERE schedule_id = wanted.value
            AND status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    ) AS "jobs!: i64"
FROM json_each(?1) AS wanted
