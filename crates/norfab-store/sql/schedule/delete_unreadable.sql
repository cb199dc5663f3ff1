-- Deletes a schedule (?1 row number, ?2 when) whose row cannot be read. The other columns, which may be what is wrong with
-- it, stay as they are, or the table would refuse the row.
UPDATE job_schedules NOT INDEXED
SET state = 'DISABLED', deleted_at = ?2
WHERE rowid = ?1
