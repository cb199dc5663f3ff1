-- The tables that the Python client makes, as it makes them. In a database that it made, nothing of this happens.

CREATE TABLE IF NOT EXISTS jobs (
    uuid TEXT PRIMARY KEY,
    service TEXT NOT NULL,
    task TEXT NOT NULL,
    args BLOB,
    kwargs BLOB,
    timeout INTEGER,
    deadline REAL,
    status TEXT DEFAULT 'NEW',
    workers_requested TEXT,
    workers_dispatched TEXT,
    workers_started TEXT,
    workers_completed TEXT,
    result_data BLOB,
    errors TEXT,
    received_timestamp TEXT NOT NULL,
    started_timestamp TEXT,
    completed_timestamp TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    last_poll_timestamp REAL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_uuid TEXT NOT NULL,
    message TEXT NOT NULL,
    severity TEXT DEFAULT 'INFO',
    task TEXT,
    event_data BLOB,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (job_uuid) REFERENCES jobs (uuid) ON DELETE CASCADE
);

CREATE INDEX IF NOT EXISTS idx_jobs_status ON jobs (status);
CREATE INDEX IF NOT EXISTS idx_jobs_created ON jobs (created_at);
CREATE INDEX IF NOT EXISTS idx_jobs_service ON jobs (service);
CREATE INDEX IF NOT EXISTS idx_jobs_deadline ON jobs (deadline);
CREATE INDEX IF NOT EXISTS idx_events_job_uuid ON events (job_uuid);
CREATE INDEX IF NOT EXISTS idx_events_severity ON events (severity);
CREATE INDEX IF NOT EXISTS idx_jobs_last_poll ON jobs (last_poll_timestamp);
