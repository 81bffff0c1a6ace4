-- Other relays. A task holds the row while it follows the relay. next_attempt of a held row is the time that announcements
-- have asked for since. failing_from: begin of the failures since the last steady connection.
CREATE TABLE sync_relays (
    url           TEXT NOT NULL PRIMARY KEY,
    bootstrap     BOOLEAN NOT NULL DEFAULT FALSE,
    capability    TEXT NOT NULL DEFAULT 'unknown',
    learned_at    BIGINT,
    next_attempt  BIGINT NOT NULL,
    failures      BIGINT NOT NULL DEFAULT 0,
    failing_from  BIGINT,
    reason        TEXT NOT NULL DEFAULT '',
    rests_until   BIGINT,
    connected_at  BIGINT,
    seen_at       BIGINT,
    reconciled_at BIGINT,
    events        BIGINT NOT NULL DEFAULT 0,
    refused       BIGINT NOT NULL DEFAULT 0,
    holder        TEXT,
    token         BIGINT NOT NULL DEFAULT 0,
    expires_at    BIGINT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX sync_relays_due ON sync_relays (next_attempt) WHERE expires_at IS NULL;
CREATE INDEX sync_relays_held ON sync_relays (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX sync_relays_bootstrap ON sync_relays (url) WHERE bootstrap;

-- Relays that an announcement names, while it waits and while its repository is served. from_at: a relay is not asked for the
-- states of a waiting announcement before.
CREATE TABLE sync_relay_repos (
    identifier TEXT NOT NULL,
    pubkey     BYTEA NOT NULL,
    url        TEXT NOT NULL,
    from_at    BIGINT NOT NULL,
    asked      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (identifier, pubkey, url)
);
CREATE INDEX sync_relay_repos_by_url ON sync_relay_repos (url);

-- Events of a relay that were refused here, so that they are not downloaded again. class: the kind of refusal.
CREATE TABLE sync_refused (
    url        TEXT NOT NULL,
    event_id   BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    class      TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (url, event_id)
);
CREATE INDEX sync_refused_by_window ON sync_refused (url, created_at, event_id);
CREATE INDEX sync_refused_by_class ON sync_refused (url, class);
CREATE INDEX sync_refused_by_age ON sync_refused (at);

-- The newest state of an author that was seen at a relay.
CREATE TABLE sync_replicas (
    identifier TEXT NOT NULL,
    pubkey     BYTEA NOT NULL,
    url        TEXT NOT NULL,
    state_id   BYTEA NOT NULL,
    state_at   BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    PRIMARY KEY (identifier, pubkey, url)
);
CREATE INDEX sync_replicas_by_age ON sync_replicas (seen_at);
