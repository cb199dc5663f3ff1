-- The rows with these row numbers (?1) or UUIDs (?2, ?5), in no order, and as often as they are named. Payloads only where
-- they are asked for: the arguments of all (?3), the results of all (?4) or of the UUIDs ?5. The lists are joined: for each
-- `IN (SELECT ..)` SQLite makes a table of its own, which takes longer than the reading of a row.
SELECT
    jobs.rowid AS "row!: i64",
    uuid AS "uuid!: Cell",
    service AS "service!: Cell",
    task AS "task!: Cell",
    status AS "status!: Cell",
    timeout AS "timeout!: Cell",
    deadline AS "deadline!: Cell",
    workers_requested AS "workers_requested!: Cell",
    workers_dispatched AS "workers_dispatched!: Cell",
    workers_started AS "workers_started!: Cell",
    workers_completed AS "workers_completed!: Cell",
    pending_inputs AS "pending_inputs!: Cell",
    errors AS "errors!: Cell",
    last_poll_timestamp AS "last_poll!: Cell",
    scheduled_for AS "scheduled_for!: Cell",
    start_deadline AS "start_deadline!: Cell",
    schedule_id AS "schedule_id!: Cell",
    origin AS "origin!: Cell",
    -- Rows of the Python client have local time only, the later two of them as ctime() writes it.
    ifnull(added_at, CAST(strftime('%s', created_at, 'utc') AS INTEGER)) AS "created_at!: Cell",
    released_at AS "released_at!: Cell",
    ifnull(
        started_at,
        CASE WHEN started_timestamp IS NOT NULL THEN CAST(strftime('%s', printf(
            '%s-%02d-%02d %s',
            substr(started_timestamp, 21, 4),
            (instr('JanFebMarAprMayJunJulAugSepOctNovDec', substr(started_timestamp, 5, 3)) + 2) / 3,
            substr(started_timestamp, 9, 2),
            substr(started_timestamp, 12, 8)
        ), 'utc') AS INTEGER) END
    ) AS "started_at!: Cell",
    ifnull(
        finished_at,
        CASE WHEN completed_timestamp IS NOT NULL THEN CAST(strftime('%s', printf(
            '%s-%02d-%02d %s',
            substr(completed_timestamp, 21, 4),
            (instr('JanFebMarAprMayJunJulAugSepOctNovDec', substr(completed_timestamp, 5, 3)) + 2) / 3,
            substr(completed_timestamp, 9, 2),
            substr(completed_timestamp, 12, 8)
        ), 'utc') AS INTEGER) END
    ) AS "finished_at!: Cell",
    dispatch_target AS "dispatch_target!: Cell",
    posts_sent AS "posts_sent!: Cell",
    posts_refused AS "posts_refused!: Cell",
    next_attempt_at AS "next_attempt_at!: Cell",
    CASE WHEN ?3 THEN args END AS "args!: Cell",
    CASE WHEN ?3 THEN kwargs END AS "kwargs!: Cell",
    CASE WHEN wanted.results THEN result_data END AS "result_data!: Cell"
FROM (
    SELECT value AS "row", ?4 AS results FROM json_each(?1)
    UNION ALL
    SELECT named.rowid, ?4 FROM json_each(?2) AS list CROSS JOIN jobs AS named ON named.uuid = list.value
    UNION ALL
    SELECT named.rowid, 1 FROM json_each(?5) AS list CROSS JOIN jobs AS named ON named.uuid = list.value
) AS wanted CROSS JOIN jobs
WHERE jobs.rowid = wanted."row"
