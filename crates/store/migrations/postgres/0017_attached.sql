-- Events that belong to an announcement in purgatory and wait with it: issues, comments, patches, pull requests.
CREATE TABLE purgatory_attached (
    event_id   BYTEA NOT NULL PRIMARY KEY,
    pubkey     BYTEA NOT NULL,
    json       TEXT NOT NULL,
    bytes      BIGINT NOT NULL,
    address    TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX purgatory_attached_by_key ON purgatory_attached (pubkey);
CREATE INDEX purgatory_attached_by_address ON purgatory_attached (address);

-- The announcements that such an event waits with.
CREATE TABLE purgatory_attached_repos (
    event_id   BYTEA NOT NULL REFERENCES purgatory_attached (event_id) ON DELETE CASCADE,
    pubkey     BYTEA NOT NULL,
    identifier TEXT NOT NULL,
    PRIMARY KEY (event_id, identifier, pubkey)
);
CREATE INDEX purgatory_attached_repos_by_repo ON purgatory_attached_repos (identifier, pubkey);

-- Served events that are linked to a repository only through others: how many steps away they are. Those that tag a
-- repository, issue, patch or pull request, or are tagged by one, have no row.
CREATE TABLE nostr_indirect (
    n      BIGINT NOT NULL PRIMARY KEY REFERENCES nostr_events (n) ON DELETE CASCADE,
    pubkey BYTEA NOT NULL,
    steps  BIGINT NOT NULL
);
CREATE INDEX nostr_indirect_by_key ON nostr_indirect (pubkey);
