-- Gives schedules another rule (?1, payloads that change cut out of ?2); the cursor is moved apart from it.
UPDATE job_schedules NOT INDEXED
SET name = change.value ->> 'name',
    service = change.value ->> 'service',
    task = change.value ->> 'task',
    args = CASE
        WHEN change.value ->> 'args_bytes' IS NULL THEN args
        ELSE substr(?2, change.value ->> 'args_at', change.value ->> 'args_bytes')
    END,
    kwargs = CASE
        WHEN change.value ->> 'kwargs_bytes' IS NULL THEN kwargs
        ELSE substr(?2, change.value ->> 'kwargs_at', change.value ->> 'kwargs_bytes')
    END,
    workers = change.value ->> 'workers',
    timeout = change.value ->> 'timeout',
    trigger_type = change.value ->> 'trigger_type',
    trigger_config = change.value ->> 'trigger_config',
    timezone = change.value ->> 'timezone',
    start_at = (change.value ->> 'start_at') / 1000000.0,
    end_at = (change.value ->> 'end_at') / 1000000.0,
    anchor_at = (change.value ->> 'anchor_at') / 1000000.0,
    jitter_seconds = change.value ->> 'jitter_seconds',
    "coalesce" = change.value ->> 'coalesce',
    misfire_grace_seconds = change.value ->> 'misfire_grace_seconds',
    overlap_policy = change.value ->> 'overlap_policy',
    max_instances = change.value ->> 'max_instances',
    revision = change.value ->> 'revision'
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value ->> 'row'
    AND job_schedules.revision = change.value ->> 'expected_revision'
    AND job_schedules.state = change.value ->> 'expected_state'
