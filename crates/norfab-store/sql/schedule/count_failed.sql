-- Counts failed runs of schedules (?1: identities, and how many). A counter that is none any more is left alone, so that
-- it stops no job from ending.
UPDATE job_schedules
SET failed_runs = failed_runs + (change.value ->> 'runs')
FROM json_each(?1) AS change
WHERE job_schedules.uuid = change.value ->> 'schedule'
    AND typeof(failed_runs) = 'integer'
    AND failed_runs BETWEEN 0 AND 9223372036854775807 - (change.value ->> 'runs')
