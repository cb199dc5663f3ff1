-- The unfinished jobs of a schedule (?1), the oldest first, at most ?2 of them, and since when each is under way.
SELECT uuid AS "uuid!: Cell", ifnull(released_at, added_at) AS "since!: Cell"
FROM jobs INDEXED BY jobs_of_schedule
WHERE schedule_id = ?1
    AND status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
ORDER BY rowid
LIMIT ?2
