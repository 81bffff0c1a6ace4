-- Identifiers whose events wait for git data: a task holds the row while it fetches. next_attempt of a held row is the time
-- that events have asked for since the task began.
CREATE TABLE sync_queue (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    identifier   TEXT NOT NULL UNIQUE,
    next_attempt BIGINT NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    notices      BIGINT NOT NULL DEFAULT 0,
    ran_at       BIGINT NOT NULL DEFAULT 0,
    holder       TEXT,
    token        BIGINT NOT NULL DEFAULT 0,
    expires_at   BIGINT,
    created_at   BIGINT NOT NULL
);
CREATE INDEX sync_queue_due ON sync_queue (next_attempt) WHERE expires_at IS NULL;
CREATE INDEX sync_queue_held ON sync_queue (expires_at) WHERE expires_at IS NOT NULL;

-- Clone URLs that were tried for an identifier. fetched: digest of objects that came from there and completed nothing.
CREATE TABLE sync_sources (
    queue_id BIGINT NOT NULL REFERENCES sync_queue (id) ON DELETE CASCADE,
    url      TEXT NOT NULL,
    domain   TEXT NOT NULL,
    tried_at BIGINT NOT NULL,
    outcome  TEXT NOT NULL,
    detail   TEXT NOT NULL,
    fetched  BLOB,
    PRIMARY KEY (queue_id, url)
) WITHOUT ROWID;
CREATE INDEX sync_sources_by_domain ON sync_sources (domain);

-- Hosts and ports that git data is fetched from.
CREATE TABLE sync_domains (
    domain       TEXT NOT NULL PRIMARY KEY,
    rests_from   BIGINT,
    rests_until  BIGINT,
    reason       TEXT NOT NULL DEFAULT '',
    failures     BIGINT NOT NULL DEFAULT 0,
    failed_at    BIGINT,
    succeeded_at BIGINT,
    asked_at     BIGINT NOT NULL
);
CREATE INDEX sync_domains_by_use ON sync_domains (asked_at);

-- Requests of the last window. ends_at: a request that runs is over by then at the latest.
CREATE TABLE sync_requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    domain  TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    holder  TEXT,
    ends_at BIGINT
);
CREATE INDEX sync_requests_by_domain ON sync_requests (domain, made_at);
CREATE INDEX sync_requests_by_time ON sync_requests (made_at);
CREATE INDEX sync_requests_running ON sync_requests (ends_at) WHERE ends_at IS NOT NULL;

-- Identifiers that wait for their turn at a domain.
CREATE TABLE sync_turns (
    domain   TEXT NOT NULL,
    queue_id BIGINT NOT NULL REFERENCES sync_queue (id) ON DELETE CASCADE,
    since    BIGINT NOT NULL,
    PRIMARY KEY (domain, queue_id)
) WITHOUT ROWID;
CREATE INDEX sync_turns_in_order ON sync_turns (domain, since, queue_id);
CREATE INDEX sync_turns_by_queue ON sync_turns (queue_id);
