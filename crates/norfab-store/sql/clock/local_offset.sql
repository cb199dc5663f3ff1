-- How far local time is ahead of UTC at an instant (?1, whole seconds since 1970), in seconds.
SELECT CAST(strftime('%s', ?1, 'unixepoch', 'localtime') AS INTEGER) - ?1 AS "offset: i64"
