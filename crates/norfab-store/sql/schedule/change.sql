-- Writes what calls and passes make of schedules (?1): state, cursor, counters and what is told of them.
UPDATE job_schedules NOT INDEXED
SET state = change.value ->> 'state',
    next_run_at = (change.value ->> 'next_run_at') / 1000000.0,
    next_due_at = (change.value ->> 'next_due_at') / 1000000.0,
    decided_until = (change.value ->> 'decided_until') / 1000000.0,
    decided_at = (change.value ->> 'decided_at') / 1000000.0,
    zone_data = CASE WHEN change.value ->> 'by_this_data' THEN change.value ->> 'zone_data' ELSE zone_data END,
    zone_offset = CASE WHEN change.value ->> 'by_this_data' THEN change.value ->> 'zone_offset' ELSE zone_offset END,
    last_run_at = (change.value ->> 'last_run_at') / 1000000.0,
    updated_at = (change.value ->> 'updated_at') / 1000000.0,
    total_runs = change.value ->> 'total_runs',
    missed_runs = change.value ->> 'missed_runs',
    overlap_skips = change.value ->> 'overlap_skips',
    coalesced_runs = change.value ->> 'coalesced_runs',
    passed_over = change.value ->> 'passed_over',
    last_error = change.value ->> 'last_error',
    last_outcome = change.value ->> 'last_outcome'
FROM json_each(?1) AS change
WHERE job_schedules.rowid = change.value ->> 'row'
    AND job_schedules.revision = change.value ->> 'expected_revision'
    AND job_schedules.state = change.value ->> 'expected_state'
    -- The cursor as it was read. Instants of other programs may lie between two microseconds.
    AND (next_run_at IS NULL) = (change.value ->> 'expected_run_at' IS NULL)
    AND ifnull(abs(next_run_at - (change.value ->> 'expected_run_at') / 1000000.0) < 0.000002, true)
