-- The answers that wait for these jobs (?1), the oldest first, at most ?2 of them.
SELECT
    id AS "id!: i64",
    job_uuid AS "job!: Cell",
    worker AS "worker!: Cell",
    answer AS "answer!: Cell"
FROM input_answers INDEXED BY input_answers_job
WHERE job_uuid IN (SELECT value FROM json_each(?1))
ORDER BY id
LIMIT ?2
