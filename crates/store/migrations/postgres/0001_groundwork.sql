-- Names sort by their bytes (COLLATE "C"), as on SQLite.
-- Times are microseconds since the epoch. JSON is text. Ids are never given out twice (IDENTITY).

CREATE TABLE users (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          TEXT COLLATE "C" UNIQUE,
    display_name  TEXT,
    password_hash TEXT,
    site_admin    BOOLEAN NOT NULL DEFAULT FALSE,
    suspended_at  BIGINT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);

CREATE TABLE emails (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id     BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    address     TEXT NOT NULL,
    folded      TEXT NOT NULL UNIQUE,
    is_primary  BOOLEAN NOT NULL,
    verified_at BIGINT,
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX emails_one_primary ON emails (user_id) WHERE is_primary;

CREATE TABLE tokens (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    label        TEXT NOT NULL,
    hash         BYTEA NOT NULL UNIQUE,
    hint         TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX tokens_by_user ON tokens (user_id, id);

CREATE TABLE ssh_keys (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    title        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL UNIQUE,
    public_key   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX ssh_keys_by_user ON ssh_keys (user_id, id);

-- One allocator, so that an id can be reserved before its repository exists.
CREATE TABLE repo_ids (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reserved_at BIGINT NOT NULL
);

CREATE TABLE repos (
    id              BIGINT PRIMARY KEY REFERENCES repo_ids (id),
    owner_id        BIGINT NOT NULL REFERENCES users (id),
    name            TEXT COLLATE "C" NOT NULL,
    description     TEXT NOT NULL DEFAULT '',
    visibility      TEXT NOT NULL CHECK (visibility IN ('public', 'private')),
    governance      TEXT NOT NULL CHECK (governance IN ('account', 'nostr')),
    default_branch  TEXT NOT NULL,
    archived_at     BIGINT,
    deleted_at      BIGINT,
    fork_of_repo_id BIGINT REFERENCES repos (id) ON DELETE SET NULL,
    refs_generation BIGINT NOT NULL DEFAULT 0,
    star_count      BIGINT NOT NULL DEFAULT 0,
    watcher_count   BIGINT NOT NULL DEFAULT 0,
    size_bytes      BIGINT NOT NULL DEFAULT 0,
    pushed_at       BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX repos_live_name ON repos (owner_id, name) WHERE deleted_at IS NULL;
CREATE INDEX repos_by_owner ON repos (owner_id, id);
CREATE INDEX repos_by_fork_source ON repos (fork_of_repo_id) WHERE fork_of_repo_id IS NOT NULL;
CREATE INDEX repos_never_pushed ON repos (id) WHERE refs_generation = 0;
CREATE INDEX repos_deleted ON repos (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE repo_collaborators (
    repo_id    BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role       TEXT NOT NULL CHECK (role IN ('read', 'triage', 'write', 'maintain', 'admin')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, user_id)
);
CREATE INDEX repo_collaborators_by_user ON repo_collaborators (user_id, repo_id);

CREATE TABLE pushes (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo_id       BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    actor_user_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
    state         TEXT NOT NULL CHECK (state IN ('running', 'done', 'aborted')),
    transport     TEXT NOT NULL,
    incoming      TEXT NOT NULL,
    updates       TEXT NOT NULL,
    lease_token   BIGINT NOT NULL,
    generation    BIGINT NOT NULL,
    started_at    BIGINT NOT NULL,
    finished_at   BIGINT
);
CREATE INDEX pushes_running ON pushes (id) WHERE state = 'running';
CREATE INDEX pushes_running_of_repo ON pushes (repo_id) WHERE state = 'running';
CREATE INDEX pushes_ended ON pushes (finished_at) WHERE state <> 'running';
CREATE INDEX pushes_by_repo ON pushes (repo_id, id);

-- Append-only and without foreign keys: it outlives what it tells about.
CREATE TABLE audit_log (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq           BIGINT UNIQUE,
    prev_hash     BYTEA,
    hash          BYTEA,
    actor_user_id BIGINT,
    action        TEXT NOT NULL,
    repo_id       BIGINT,
    ip            TEXT,
    meta          TEXT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX audit_log_unsealed ON audit_log (id) WHERE seq IS NULL;
CREATE INDEX audit_log_by_repo ON audit_log (repo_id, id);

CREATE TABLE domain_events (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq           BIGINT UNIQUE,
    actor_user_id BIGINT,
    kind          TEXT NOT NULL,
    repo_id       BIGINT REFERENCES repos (id) ON DELETE SET NULL,
    source_kind   TEXT NOT NULL,
    source_id     BIGINT NOT NULL,
    public        BOOLEAN NOT NULL,
    payload       TEXT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX domain_events_unnumbered ON domain_events (id) WHERE seq IS NULL;
CREATE INDEX domain_events_by_repo ON domain_events (repo_id, seq);

-- Where the sequencer stands in each log, and the hash that the next audit row is chained to.
CREATE TABLE log_heads (
    name TEXT NOT NULL PRIMARY KEY,
    seq  BIGINT NOT NULL,
    hash BYTEA NOT NULL
);
INSERT INTO log_heads (name, seq, hash) VALUES ('events', 0, ''), ('audit', 0, '');

CREATE TABLE leases (
    name       TEXT NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    token      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE jobs (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         TEXT NOT NULL,
    payload      TEXT NOT NULL,
    unique_key   TEXT,
    priority     BIGINT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    run_at       BIGINT NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    holder       TEXT,
    token        BIGINT NOT NULL DEFAULT 0,
    expires_at   BIGINT,
    last_error   TEXT,
    created_at   BIGINT NOT NULL,
    finished_at  BIGINT
);
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key) WHERE state IN ('waiting', 'running');
CREATE INDEX jobs_due ON jobs (priority, run_at, id) WHERE state = 'waiting';
CREATE INDEX jobs_running ON jobs (expires_at) WHERE state = 'running';
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state IN ('done', 'failed');

-- One row per cron entry: whoever moves next_run_at enqueues the job, in the same transaction.
CREATE TABLE schedules (
    name        TEXT NOT NULL PRIMARY KEY,
    next_run_at BIGINT NOT NULL
);
