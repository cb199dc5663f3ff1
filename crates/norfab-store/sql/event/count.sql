-- How many events there are.
SELECT count(*) AS "events!: i64" FROM events
