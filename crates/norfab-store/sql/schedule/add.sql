-- Adds schedules (?1, their payloads cut out of ?2).
INSERT INTO job_schedules (
    uuid, name, service, task, args, kwargs, workers, timeout, trigger_type, trigger_config, timezone, start_at, end_at,
    anchor_at, jitter_seconds, next_run_at, next_due_at, decided_until, decided_at, zone_data, zone_offset,
    state, "coalesce", misfire_grace_seconds, overlap_policy, max_instances, created_at, updated_at, revision
)
SELECT
    new.value ->> 'uuid',
    new.value ->> 'name',
    new.value ->> 'service',
    new.value ->> 'task',
    substr(?2, new.value ->> 'args_at', new.value ->> 'args_bytes'),
    substr(?2, new.value ->> 'kwargs_at', new.value ->> 'kwargs_bytes'),
    new.value ->> 'workers',
    new.value ->> 'timeout',
    new.value ->> 'trigger_type',
    new.value ->> 'trigger_config',
    new.value ->> 'timezone',
    (new.value ->> 'start_at') / 1000000.0,
    (new.value ->> 'end_at') / 1000000.0,
    (new.value ->> 'anchor_at') / 1000000.0,
    new.value ->> 'jitter_seconds',
    (new.value ->> 'next_run_at') / 1000000.0,
    (new.value ->> 'next_due_at') / 1000000.0,
    (new.value ->> 'decided_until') / 1000000.0,
    (new.value ->> 'decided_at') / 1000000.0,
    new.value ->> 'zone_data',
    new.value ->> 'zone_offset',
    new.value ->> 'state',
    new.value ->> 'coalesce',
    new.value ->> 'misfire_grace_seconds',
    new.value ->> 'overlap_policy',
    new.value ->> 'max_instances',
    (new.value ->> 'created_at') / 1000000.0,
    (new.value ->> 'updated_at') / 1000000.0,
    new.value ->> 'revision'
FROM json_each(?1) AS new
