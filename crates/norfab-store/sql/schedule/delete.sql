-- Deletes a schedule (?1 row number, ?2 when) in the state ?3: it is switched off and gone from the lists. Its jobs stay as they are.
UPDATE job_schedules NOT INDEXED
SET state = 'DISABLED', deleted_at = ?2, updated_at = ?2
WHERE rowid = ?1 AND state = ?3 AND deleted_at IS NULL
