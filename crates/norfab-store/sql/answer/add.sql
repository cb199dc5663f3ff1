-- Leaves an answer (?3) to a question of a worker (?2) of a job (?1), if there is such a job.
INSERT INTO input_answers (job_uuid, worker, answer, created_at)
SELECT uuid, ?2, ?3, ?4 FROM jobs WHERE uuid = ?1
