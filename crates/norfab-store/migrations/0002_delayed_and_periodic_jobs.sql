-- Delayed jobs and periodic schedules. All instants are REAL seconds since 1970 in UTC.
--
-- The store leaves out those `ALTER TABLE jobs ADD COLUMN` lines whose column another program has added already, and
-- gives a `job_schedules` of another program the columns that it lacks. It reads one statement a line for that.
--
-- Nothing here that SQLite 3.34 cannot read: the Python client of an old system opens this database too.

CREATE TABLE IF NOT EXISTS job_schedules (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT,
    -- What every occurrence runs.
    service TEXT NOT NULL,
    task TEXT NOT NULL,
    args BLOB,
    kwargs BLOB,
    workers TEXT NOT NULL,
    timeout INTEGER NOT NULL,
    -- When. The grid of an interval starts at `anchor_at`, and `timezone` only changes how its instants are shown; other
    -- triggers run by the clocks of `timezone`.
    trigger_type TEXT NOT NULL,
    trigger_config TEXT NOT NULL,
    timezone TEXT NOT NULL DEFAULT 'UTC',
    start_at REAL,
    end_at REAL,
    anchor_at REAL NOT NULL,
    jitter_seconds INTEGER NOT NULL DEFAULT 0,
    -- The cursor: the next occurrence, the instant at which it is due (jitter added), up to when everything is decided
    -- (that stays when the clock goes back) once the clock has come to `decided_at`, and the last one that was made.
    next_run_at REAL,
    next_due_at REAL,
    decided_until REAL,
    decided_at REAL,
    last_run_at REAL,
    -- The release of the zone data by which the cursor was computed, and how many seconds the zone was ahead of UTC at
    -- `next_run_at` by it; NULL where the zone decides nothing.
    zone_data TEXT,
    zone_offset INTEGER,
    state TEXT NOT NULL,
    -- What becomes of occurrences that are late, or that find an earlier one running.
    "coalesce" TEXT NOT NULL DEFAULT 'latest',
    misfire_grace_seconds INTEGER,
    overlap_policy TEXT NOT NULL DEFAULT 'FORBID',
    max_instances INTEGER NOT NULL DEFAULT 1,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    deleted_at REAL,
    revision INTEGER NOT NULL DEFAULT 1,
    -- Each occurrence ends in exactly one of these.
    total_runs INTEGER NOT NULL DEFAULT 0,
    failed_runs INTEGER NOT NULL DEFAULT 0,
    missed_runs INTEGER NOT NULL DEFAULT 0,
    overlap_skips INTEGER NOT NULL DEFAULT 0,
    coalesced_runs INTEGER NOT NULL DEFAULT 0,
    passed_over INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    last_outcome TEXT,

    CHECK (typeof(uuid) = 'text' AND uuid <> ''),
    CHECK (name IS NULL OR (typeof(name) = 'text' AND name <> '')),
    CHECK (typeof(service) = 'text' AND typeof(task) = 'text' AND typeof(workers) = 'text'),
    CHECK (typeof(args) IN ('null', 'blob') AND typeof(kwargs) IN ('null', 'blob')),
    CHECK (typeof(timeout) = 'integer' AND timeout > 0),
    CHECK (
        CASE WHEN trigger_type = 'interval' THEN
            CASE WHEN json_valid(trigger_config) THEN
                json_type(trigger_config, '$.seconds') IS 'integer' AND json_extract(trigger_config, '$.seconds') > 0
            ELSE 0 END
        ELSE typeof(trigger_type) = 'text' AND typeof(trigger_config) = 'text' END
    ),
    CHECK (typeof(timezone) = 'text' AND timezone <> ''),
    CHECK (typeof(start_at) IN ('null', 'real') AND typeof(end_at) IN ('null', 'real')),
    CHECK (start_at IS NULL OR end_at IS NULL OR start_at < end_at),
    CHECK (typeof(anchor_at) = 'real'),
    CHECK (typeof(jitter_seconds) = 'integer' AND jitter_seconds >= 0),
    CHECK (typeof(next_run_at) IN ('null', 'real') AND typeof(last_run_at) IN ('null', 'real')),
    CHECK (typeof(decided_until) IN ('null', 'real') AND typeof(decided_at) IN ('null', 'real')),
    CHECK (typeof(zone_data) IN ('null', 'text') AND typeof(zone_offset) IN ('null', 'integer')),
    CHECK (typeof(next_due_at) IN ('null', 'real') AND (next_due_at IS NULL) = (next_run_at IS NULL)),
    CHECK (next_due_at IS NULL OR next_due_at >= next_run_at),
    CHECK (state IN ('ACTIVE', 'PAUSED', 'COMPLETED', 'DISABLED')),
    CHECK (state <> 'ACTIVE' OR next_run_at IS NOT NULL),
    CHECK (typeof("coalesce") = 'text' AND typeof(overlap_policy) = 'text'),
    CHECK (misfire_grace_seconds IS NULL OR (typeof(misfire_grace_seconds) = 'integer' AND misfire_grace_seconds > 0)),
    CHECK (typeof(max_instances) = 'integer' AND max_instances > 0),
    CHECK (typeof(created_at) = 'real' AND typeof(updated_at) = 'real'),
    CHECK (deleted_at IS NULL OR (typeof(deleted_at) = 'real' AND state = 'DISABLED')),
    CHECK (typeof(revision) = 'integer' AND revision > 0),
    CHECK (typeof(total_runs) = 'integer' AND total_runs >= 0),
    CHECK (typeof(failed_runs) = 'integer' AND failed_runs >= 0),
    CHECK (typeof(missed_runs) = 'integer' AND missed_runs >= 0),
    CHECK (typeof(overlap_skips) = 'integer' AND overlap_skips >= 0),
    CHECK (typeof(coalesced_runs) = 'integer' AND coalesced_runs >= 0),
    CHECK (typeof(passed_over) = 'integer' AND passed_over >= 0),
    CHECK (last_error IS NULL OR (typeof(last_error) = 'text' AND length(last_error) <= 500)),
    CHECK (last_outcome IS NULL OR typeof(last_outcome) = 'text')
);

CREATE UNIQUE INDEX schedules_name ON job_schedules (name) WHERE name IS NOT NULL AND deleted_at IS NULL;
-- What a pass asks for is found in this index alone; a second one for `next_run_at` would be written with each occurrence.
CREATE INDEX schedules_due ON job_schedules (next_due_at, next_run_at) WHERE state = 'ACTIVE';
CREATE INDEX schedules_by_zone ON job_schedules (zone_data) WHERE state IN ('ACTIVE', 'PAUSED') AND trigger_type <> 'interval';

-- When it was meant to start, and the last instant at which it may.
ALTER TABLE jobs ADD COLUMN scheduled_for REAL CHECK (typeof(scheduled_for) IN ('null', 'real'));
ALTER TABLE jobs ADD COLUMN start_deadline REAL CHECK (typeof(start_deadline) IN ('null', 'real'));
-- Where it came from: `direct`, `occurrence` or `run_now`; NULL is direct.
ALTER TABLE jobs ADD COLUMN schedule_id TEXT REFERENCES job_schedules (uuid) ON DELETE SET NULL;
ALTER TABLE jobs ADD COLUMN origin TEXT;
-- The steps of its life. The older text columns hold local time without a zone and go on being written beside these.
ALTER TABLE jobs ADD COLUMN added_at REAL;
ALTER TABLE jobs ADD COLUMN released_at REAL;
ALTER TABLE jobs ADD COLUMN started_at REAL;
ALTER TABLE jobs ADD COLUMN finished_at REAL;
-- The claim: where it goes (JSON), how often it was sent and refused, and when it may be sent again.
ALTER TABLE jobs ADD COLUMN dispatch_target TEXT;
ALTER TABLE jobs ADD COLUMN posts_sent INTEGER;
ALTER TABLE jobs ADD COLUMN posts_refused INTEGER;
ALTER TABLE jobs ADD COLUMN next_attempt_at REAL CHECK (typeof(next_attempt_at) IN ('null', 'real'));
-- The workers that wait for an answer, and what each asks: a JSON object by worker.
ALTER TABLE jobs ADD COLUMN pending_inputs TEXT;

-- What a pass asks: due and overdue jobs, jobs to send, jobs to expire unsent or in flight, jobs to ask for. The planner does not choose
-- these by itself: the statements name them.
CREATE INDEX jobs_due ON jobs (status, scheduled_for) WHERE scheduled_for IS NOT NULL;
CREATE INDEX jobs_overdue ON jobs (start_deadline) WHERE status = 'SCHEDULED';
CREATE INDEX jobs_to_send ON jobs (ifnull(next_attempt_at, 0)) WHERE status = 'NEW';
CREATE INDEX jobs_unsent_to_expire ON jobs (max(deadline, ifnull(next_attempt_at, 0))) WHERE status = 'NEW';
CREATE INDEX jobs_to_expire ON jobs (max(deadline, ifnull(next_attempt_at, 0))) WHERE status IN ('SUBMITTING', 'DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT');
CREATE INDEX jobs_to_poll ON jobs (ifnull(last_poll_timestamp, 0)) WHERE status IN ('DISPATCHED', 'STARTED', 'WAITING_CLIENT_INPUT');

-- The jobs of a schedule; and no occurrence twice.
CREATE INDEX jobs_of_schedule ON jobs (schedule_id, status) WHERE schedule_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_occurrence ON jobs (schedule_id, scheduled_for) WHERE schedule_id IS NOT NULL;

-- Answers to workers' questions, on their way from a process that does not dispatch to the one that does. The answer is
-- JSON.
CREATE TABLE IF NOT EXISTS input_answers (
    id INTEGER PRIMARY KEY,
    job_uuid TEXT NOT NULL REFERENCES jobs (uuid) ON DELETE CASCADE,
    worker TEXT NOT NULL,
    answer TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE INDEX input_answers_job ON input_answers (job_uuid);

-- What the client notes of itself; `codec` is how new payloads are compressed.
CREATE TABLE IF NOT EXISTS norfab_settings (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
