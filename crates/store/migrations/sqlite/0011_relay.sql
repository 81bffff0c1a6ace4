-- Signed events that the relay serves.
CREATE TABLE nostr_events (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id   BLOB NOT NULL UNIQUE,
    pubkey     BLOB NOT NULL,
    kind       BIGINT NOT NULL,
    -- The author's time, in seconds.
    created_at BIGINT NOT NULL,
    -- Of events that replace each other: the identifier, or a hash of one that is long or odd; '' where the kind has
    -- none. NULL: the event replaces nothing.
    slot       TEXT,
    -- When the author wants it forgotten, in seconds.
    expires_at BIGINT,
    -- Kept, but served to nobody.
    hidden     BOOLEAN NOT NULL DEFAULT FALSE,
    -- As it is sent.
    json       TEXT NOT NULL,
    stored_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX nostr_events_slot ON nostr_events (kind, slot, pubkey) WHERE slot IS NOT NULL;
CREATE INDEX nostr_events_by_time ON nostr_events (created_at, event_id);
CREATE INDEX nostr_events_by_kind ON nostr_events (kind, created_at);
CREATE INDEX nostr_events_by_author ON nostr_events (pubkey, created_at, kind);
CREATE INDEX nostr_events_expiring ON nostr_events (expires_at) WHERE expires_at IS NOT NULL;

-- The tags that filters can ask for, each as a number made of its letter and value.
CREATE TABLE nostr_tags (
    key        BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    n          BIGINT NOT NULL REFERENCES nostr_events (n) ON DELETE CASCADE,
    PRIMARY KEY (key, created_at, n)
) WITHOUT ROWID;
CREATE INDEX nostr_tags_of_event ON nostr_tags (n, key);

-- What authors asked to delete: 'e:<id>' or 'a:<kind>:<author>:<identifier>'. Outlives the event.
CREATE TABLE nostr_deleted (
    pubkey   BLOB NOT NULL,
    target   TEXT NOT NULL,
    -- The time of the request, in seconds.
    at       BIGINT NOT NULL,
    event_id BLOB NOT NULL,
    PRIMARY KEY (pubkey, target)
) WITHOUT ROWID;
