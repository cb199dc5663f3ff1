-- Delayed jobs (?1 row numbers) whose timeout is a plain number of seconds become NEW at ?2, and their deadline begins to run.
-- By a list alone, SQLite updates many rows in fewer steps than joined with what becomes of each. Should a rule of the table
-- refuse one, those before it are undone with the transaction.
UPDATE OR FAIL jobs NOT INDEXED
SET status = 'NEW', deadline = ?2 + timeout, released_at = ?2
WHERE rowid IN (SELECT value FROM json_each(?1)) AND status = 'SCHEDULED'
    AND typeof(timeout) = 'integer' AND timeout BETWEEN 1 AND 4294967295
