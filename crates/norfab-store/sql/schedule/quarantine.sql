-- Switches off schedules (?1: row numbers, and why) that cannot be used, at ?2. Of the other columns, which may be what is
-- wrong with them, only a deletion that is no instant is put right, or the table would refuse the row.
UPDATE job_schedules NOT INDEXED
SET state = 'DISABLED',
    last_error = change.value ->> 'reason',
    deleted_at = CASE WHEN typeof(deleted_at) IN ('null', 'real') THEN deleted_at ELSE ?2 END
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value ->> 'row' AND job_schedules.state = 'ACTIVE'
