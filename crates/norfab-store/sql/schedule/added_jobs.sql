-- The UUIDs of the jobs that were added last, ?1 of them: each has the row number behind the highest.
SELECT uuid AS "uuid!: String"
FROM jobs
WHERE rowid > (SELECT max(rowid) FROM jobs) - ?1
