-- The repositories that a waiting proposal is for, or that its commit was pushed to, so that each can tell what waits for
-- it. `n` counts those of one proposal. What waits already when this is added is forgotten soon, and not listed.
CREATE TABLE purgatory_proposal_repos (
    event_id   BLOB NOT NULL REFERENCES purgatory_proposals (event_id) ON DELETE CASCADE,
    n          BIGINT NOT NULL,
    pubkey     BLOB NOT NULL,
    identifier TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (event_id, n)
);
CREATE INDEX purgatory_proposal_repos_by_repo
    ON purgatory_proposal_repos (identifier, pubkey, created_at, event_id);
