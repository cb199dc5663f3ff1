-- How many jobs are in each status.
SELECT status AS "name!: Cell", count(*) AS "jobs!: i64"
FROM jobs
GROUP BY status
