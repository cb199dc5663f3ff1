-- The schedules with these row numbers (?1) or UUIDs (?2), in no order, and as often as they are named; their arguments if
-- these take ?3 bytes at the most as they are stored, each of the two (none do with -1), or else the number 0, which cannot
-- be read as any; and how many unfinished jobs each has, only when asked for (?4). The lists are joined: for each
-- `IN (SELECT ..)` SQLite makes a table of its own, which takes longer than the reading of a row.
SELECT
    job_schedules.rowid AS "row!: i64",
    uuid AS "uuid!: Cell",
    name AS "name!: Cell",
    service AS "service!: Cell",
    task AS "task!: Cell",
    CASE WHEN ifnull(octet_length(args), 0) <= ?3 THEN args ELSE 0 END AS "args!: Cell",
    CASE WHEN ifnull(octet_length(kwargs), 0) <= ?3 THEN kwargs ELSE 0 END AS "kwargs!: Cell",
    workers AS "workers!: Cell",
    timeout AS "timeout!: Cell",
    trigger_type AS "trigger_type!: Cell",
    trigger_config AS "trigger_config!: Cell",
    timezone AS "timezone!: Cell",
    start_at AS "start_at!: Cell",
    end_at AS "end_at!: Cell",
    anchor_at AS "anchor_at!: Cell",
    jitter_seconds AS "jitter_seconds!: Cell",
    next_run_at AS "next_run_at!: Cell",
    next_due_at AS "next_due_at!: Cell",
    decided_until AS "decided_until!: Cell",
    decided_at AS "decided_at!: Cell",
    last_run_at AS "last_run_at!: Cell",
    zone_data AS "zone_data!: Cell",
    zone_offset AS "zone_offset!: Cell",
    state AS "state!: Cell",
    "coalesce" AS "coalesce!: Cell",
    misfire_grace_seconds AS "misfire_grace_seconds!: Cell",
    overlap_policy AS "overlap_policy!: Cell",
    max_instances AS "max_instances!: Cell",
    created_at AS "created_at!: Cell",
    updated_at AS "updated_at!: Cell",
    deleted_at AS "deleted_at!: Cell",
    revision AS "revision!: Cell",
    total_runs AS "total_runs!: Cell",
    failed_runs AS "failed_runs!: Cell",
    missed_runs AS "missed_runs!: Cell",
    overlap_skips AS "overlap_skips!: Cell",
    coalesced_runs AS "coalesced_runs!: Cell",
    passed_over AS "passed_over!: Cell",
    last_error AS "last_error!: Cell",
    last_outcome AS "last_outcome!: Cell",
    CASE
        WHEN ?4 THEN (
            SELECT count(*) FROM jobs INDEXED BY jobs_of_schedule
            WHERE schedule_id = job_schedules.uuid
                AND status IN ('SCHEDULED', 'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT')
        )
    END AS "unfinished!: Cell"
FROM (
    SELECT value AS "row" FROM json_each(?1)
    UNION ALL
    SELECT named.rowid FROM json_each(?2) AS list CROSS JOIN job_schedules AS named ON named.uuid = list.value
) AS wanted CROSS JOIN job_schedules
WHERE job_schedules.rowid = wanted."row"
