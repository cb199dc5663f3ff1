-- Records when jobs (?1 row numbers) are asked for (?2).
UPDATE jobs NOT INDEXED
SET last_poll_timestamp = ?2
WHERE rowid IN (SELECT value FROM json_each(?1)) AND status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
