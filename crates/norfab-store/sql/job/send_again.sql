-- Jobs in flight are sent again, or asked for where they may not start any more.
UPDATE jobs NOT INDEXED
SET status = change.value ->> 'status',
    dispatch_target = change.value ->> 'dispatch_target',
    workers_dispatched = change.value ->> 'workers_dispatched',
    posts_sent = change.value ->> 'posts_sent',
    last_poll_timestamp = ifnull((change.value ->> 'last_poll') / 1000000.0, 0)
FROM json_each(?1) AS change
WHERE jobs.rowid = change.value ->> 'row' AND jobs.status = change.value ->> 'expected'
