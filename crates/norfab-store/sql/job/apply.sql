-- What replies, a passed deadline or the lack of a worker change in jobs (?1, their results cut out of ?2).
UPDATE jobs NOT INDEXED
SET status = change.value ->> 'status',
    -- It moves with another attempt only: another program's may lie between two microseconds.
    deadline = CASE
        WHEN change.value ->> 'next_attempt_at' IS NULL THEN deadline
        ELSE (change.value ->> 'deadline') / 1000000.0
    END,
    dispatch_target = change.value ->> 'dispatch_target',
    workers_dispatched = change.value ->> 'workers_dispatched',
    workers_started = change.value ->> 'workers_started',
    workers_completed = change.value ->> 'workers_completed',
    pending_inputs = change.value ->> 'pending_inputs',
    result_data = CASE
        WHEN change.value ->> 'results_bytes' IS NULL THEN result_data
        ELSE substr(?2, change.value ->> 'results_at', change.value ->> 'results_bytes')
    END,
    errors = change.value ->> 'errors',
    posts_sent = change.value ->> 'posts_sent',
    posts_refused = change.value ->> 'posts_refused',
    -- What was NEW, and may have been sent by an earlier claim, is asked for.
    last_poll_timestamp = CASE
        WHEN change.value ->> 'expected' = 'NEW' AND change.value ->> 'status' = 'DISPATCHED' THEN 0
        ELSE last_poll_timestamp
    END,
    next_attempt_at = (change.value ->> 'next_attempt_at') / 1000000.0,
    started_at = ifnull(started_at, (change.value ->> 'started_at') / 1000000.0),
    started_timestamp = ifnull(started_timestamp, change.value ->> 'started_timestamp'),
    finished_at = ifnull(finished_at, (change.value ->> 'finished_at') / 1000000.0),
    completed_timestamp = ifnull(completed_timestamp, change.value ->> 'completed_timestamp')
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = change.value ->> 'expected'
