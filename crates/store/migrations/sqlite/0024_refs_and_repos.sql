-- Refs of proposals that keys without a named account made, in the repositories they are for.
CREATE TABLE nostr_proposal_refs (
    repo_id  BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    event_id BLOB NOT NULL REFERENCES nostr_events (event_id) ON DELETE CASCADE,
    pubkey   BLOB NOT NULL,
    PRIMARY KEY (repo_id, event_id)
) WITHOUT ROWID;
CREATE INDEX nostr_proposal_refs_by_event ON nostr_proposal_refs (event_id);
CREATE INDEX nostr_proposal_refs_by_key ON nostr_proposal_refs (pubkey);

-- Repositories that strangers announced, and refs of their proposals, by network and day.
ALTER TABLE nostr_addresses ADD COLUMN repos BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nostr_addresses ADD COLUMN refs BIGINT NOT NULL DEFAULT 0;
