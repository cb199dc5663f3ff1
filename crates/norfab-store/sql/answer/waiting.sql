-- The answers that wait, the oldest first, at most ?1 of them.
SELECT
    id AS "id!: i64",
    job_uuid AS "job!: Cell",
    worker AS "worker!: Cell",
    answer AS "answer!: Cell"
FROM input_answers
WHERE id > 0
ORDER BY id
LIMIT ?1
