-- Takes answers (?1) away.
DELETE FROM input_answers WHERE id IN (SELECT value FROM json_each(?1))
