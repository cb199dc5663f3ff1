-- The jobs whose deadline has passed (?1), the earliest first, and before them those whose deadline is no instant, at most
-- ?2 of them, with the size of their results: first those that are NEW, then those in flight unless only the former are
-- wanted (?3). One that waits for another attempt is left alone until then.
SELECT rowid AS "row!: i64", ifnull(octet_length(result_data), 0) AS "bytes!: i64"
FROM jobs INDEXED BY jobs_unsent_to_expire
WHERE status = 'NEW' AND max(deadline, ifnull(next_attempt_at, 0)) >= 253402300800
UNION ALL
SELECT * FROM (
    SELECT rowid, ifnull(octet_length(result_data), 0)
    FROM jobs INDEXED BY jobs_unsent_to_expire
    WHERE status = 'NEW' AND max(deadline, ifnull(next_attempt_at, 0)) <= ?1
    ORDER BY max(deadline, ifnull(next_attempt_at, 0)), rowid
    LIMIT ?2
) AS due
UNION ALL
SELECT rowid, ifnull(octet_length(result_data), 0)
FROM jobs INDEXED BY jobs_to_expire
WHERE status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
    AND max(deadline, ifnull(next_attempt_at, 0)) >= 253402300800
    AND NOT ?3
UNION ALL
SELECT * FROM (
    SELECT rowid, ifnull(octet_length(result_data), 0)
    FROM jobs INDEXED BY jobs_to_expire
    WHERE status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
        AND max(deadline, ifnull(next_attempt_at, 0)) <= ?1
        AND NOT ?3
    ORDER BY max(deadline, ifnull(next_attempt_at, 0)), rowid
    LIMIT ?2
) AS overdue
LIMIT ?2
