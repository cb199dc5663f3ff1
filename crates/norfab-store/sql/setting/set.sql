-- Notes a value under a key.
INSERT INTO norfab_settings (key, value) VALUES (?1, ?2)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
