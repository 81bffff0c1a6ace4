-- The key that an account is known by in nostr, as people write it.
ALTER TABLE users ADD COLUMN npub TEXT;
CREATE UNIQUE INDEX users_by_npub ON users (npub) WHERE npub IS NOT NULL;

-- The signed events that a push brings out of purgatory, as JSON; NULL for a push that an account's role allowed.
ALTER TABLE pushes ADD COLUMN signed TEXT;

-- The door by key and identifier of repositories that signed states rule.
CREATE TABLE nostr_repos (
    repo_id    BIGINT NOT NULL PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    pubkey     BYTEA NOT NULL,
    identifier TEXT NOT NULL,
    UNIQUE (identifier, pubkey)
);
CREATE INDEX nostr_repos_by_key ON nostr_repos (pubkey);

-- Purgatory: events that are accepted and not served, because the git data is not here yet. `event_at` is the author's
-- date in seconds.
CREATE TABLE purgatory_announcements (
    pubkey     BYTEA NOT NULL,
    identifier TEXT NOT NULL,
    event_id   BYTEA NOT NULL UNIQUE,
    event_at   BIGINT NOT NULL,
    json       TEXT NOT NULL,
    -- What the repository will be; NULL: kept beside another maintainer's announcement, without a repository here.
    repo_id    BIGINT UNIQUE REFERENCES repo_ids (id),
    address    TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (identifier, pubkey)
);
CREATE INDEX purgatory_announcements_by_expiry ON purgatory_announcements (expires_at);
CREATE INDEX purgatory_announcements_by_key ON purgatory_announcements (pubkey);
CREATE INDEX purgatory_announcements_by_address ON purgatory_announcements (address);

CREATE TABLE purgatory_states (
    event_id   BYTEA NOT NULL PRIMARY KEY,
    pubkey     BYTEA NOT NULL,
    identifier TEXT NOT NULL,
    event_at   BIGINT NOT NULL,
    json       TEXT NOT NULL,
    address    TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX purgatory_states_by_identifier ON purgatory_states (identifier, pubkey);
CREATE INDEX purgatory_states_by_expiry ON purgatory_states (expires_at);
CREATE INDEX purgatory_states_by_key ON purgatory_states (pubkey);
CREATE INDEX purgatory_states_by_address ON purgatory_states (address);

-- Proposals that wait for their commit, and commits that wait for their proposal: those have no `json` yet, and their
-- objects are in an incoming area.
CREATE TABLE purgatory_proposals (
    event_id   BYTEA NOT NULL PRIMARY KEY,
    pubkey     BYTEA,
    json       TEXT,
    commit_id  TEXT NOT NULL,
    repo_id    BIGINT,
    incoming   TEXT,
    bytes      BIGINT NOT NULL DEFAULT 0,
    address    TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX purgatory_proposals_by_expiry ON purgatory_proposals (expires_at);
CREATE UNIQUE INDEX purgatory_proposals_by_area ON purgatory_proposals (incoming) WHERE incoming IS NOT NULL;
CREATE INDEX purgatory_proposals_by_key ON purgatory_proposals (pubkey);
CREATE INDEX purgatory_proposals_by_address ON purgatory_proposals (address);

-- What waited in vain, so that nobody fetches it again for a while.
CREATE TABLE purgatory_expired (
    event_id BYTEA NOT NULL PRIMARY KEY,
    until    BIGINT NOT NULL
);
CREATE INDEX purgatory_expired_by_end ON purgatory_expired (until);
