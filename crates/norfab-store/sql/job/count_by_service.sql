-- How many jobs each service has.
SELECT service AS "name!: Cell", count(*) AS "jobs!: i64"
FROM jobs
GROUP BY service
