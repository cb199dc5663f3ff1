-- Switches off a schedule (?1 row number) whose row cannot be read, at ?2. Of the other columns, which may be what is wrong
-- with it, only a deletion that is no instant is put right, or the table would refuse the row.
UPDATE job_schedules NOT INDEXED
SET state = 'DISABLED',
    deleted_at = CASE WHEN typeof(deleted_at) IN ('null', 'real') THEN deleted_at ELSE ?2 END
WHERE rowid = ?1
