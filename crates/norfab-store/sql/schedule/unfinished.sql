-- How many unfinished jobs each of these schedules (?1) has, without those that have none.
SELECT schedule AS "schedule!: String", jobs AS "jobs!: i64"
FROM (
    SELECT
        CAST(wanted.value AS TEXT) AS schedule,
        (
            SELECT count(*) FROM jobs INDEXED BY jobs_of_schedule
            WHERE schedule_id = wanted.value
                AND status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
        ) AS jobs
    FROM json_each(?1) AS wanted
)
WHERE jobs > 0
