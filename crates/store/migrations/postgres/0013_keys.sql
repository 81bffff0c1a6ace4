-- Proofs of keys and challenges that were used, so that each serves once. Only until they would have ended anyway.
CREATE TABLE nostr_proofs (
    id    BYTEA NOT NULL PRIMARY KEY,
    until BIGINT NOT NULL
);
CREATE INDEX nostr_proofs_by_end ON nostr_proofs (until);
