-- Keys of accounts that were deleted while they were suspended: they stay refused.
CREATE TABLE barred_keys (
    npub       TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL
);

-- Git data that pushes of strangers are about to store. It counts for their quotas before it is written, and until it is
-- charged or given back. One that its process left behind expires.
CREATE TABLE quota_reservations (
    id         TEXT NOT NULL PRIMARY KEY,
    pubkey     BYTEA,
    address    TEXT,
    bytes      BIGINT NOT NULL,
    holder     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX quota_reservations_by_key ON quota_reservations (pubkey);
CREATE INDEX quota_reservations_by_address ON quota_reservations (address);
CREATE INDEX quota_reservations_by_expiry ON quota_reservations (expires_at);

-- One row, held by whoever judges git data against what all strangers have together.
CREATE TABLE quota_locks (
    name TEXT NOT NULL PRIMARY KEY
);
INSERT INTO quota_locks (name) VALUES ('git data');

-- The pull requests in purgatory that an event waits with, as it may wait with announcements.
CREATE TABLE purgatory_attached_proposals (
    event_id    BYTEA NOT NULL REFERENCES purgatory_attached (event_id) ON DELETE CASCADE,
    proposal_id BYTEA NOT NULL,
    PRIMARY KEY (event_id, proposal_id)
);
CREATE INDEX purgatory_attached_proposals_by_proposal ON purgatory_attached_proposals (proposal_id);
