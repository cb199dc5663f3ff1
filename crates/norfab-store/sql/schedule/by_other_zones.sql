-- The schedules whose instants hang on a zone and whose cursor was computed by other zone data than ?1, or by nobody
-- knows which.
SELECT rowid AS "row!: i64"
FROM job_schedules INDEXED BY schedules_by_zone
WHERE state IN ('ACTIVE', 'PAUSED') AND trigger_type <> 'interval' AND zone_data < ?1 AND next_run_at IS NOT NULL
UNION ALL
SELECT rowid
FROM job_schedules INDEXED BY schedules_by_zone
WHERE state IN ('ACTIVE', 'PAUSED') AND trigger_type <> 'interval' AND zone_data > ?1 AND next_run_at IS NOT NULL
UNION ALL
SELECT rowid
FROM job_schedules INDEXED BY schedules_by_zone
WHERE state IN ('ACTIVE', 'PAUSED') AND trigger_type <> 'interval' AND zone_data IS NULL AND next_run_at IS NOT NULL
