-- The schedule that has a name (?1); deleted ones have given theirs up.
SELECT rowid AS "row!: i64"
FROM job_schedules INDEXED BY schedules_name
WHERE name = ?1 AND deleted_at IS NULL
