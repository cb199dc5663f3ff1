-- What the client noted under a key.
SELECT value AS "value!: String" FROM norfab_settings WHERE key = ?1
