-- Old names of repositories. A live repository of the same name wins over one.
CREATE TABLE repo_redirects (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    old_owner_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    old_name     TEXT NOT NULL,
    repo_id      BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    UNIQUE (old_owner_id, old_name)
);
CREATE INDEX repo_redirects_by_repo ON repo_redirects (repo_id, id);

-- Offers to hand a repository over. `slug` is what it was called then.
CREATE TABLE repo_transfers (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id       BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    slug          TEXT NOT NULL,
    from_owner_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    recipient_id  BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_by    BIGINT REFERENCES users (id) ON DELETE SET NULL,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'declined', 'canceled', 'expired')),
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    decided_at    BIGINT
);
CREATE UNIQUE INDEX repo_transfers_one_pending ON repo_transfers (repo_id) WHERE status = 'pending';
CREATE INDEX repo_transfers_by_repo ON repo_transfers (repo_id, id);
CREATE INDEX repo_transfers_by_recipient ON repo_transfers (recipient_id, id);
CREATE INDEX repo_transfers_by_giver ON repo_transfers (from_owner_id, id);
CREATE INDEX repo_transfers_by_creator ON repo_transfers (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX repo_transfers_due ON repo_transfers (expires_at) WHERE status = 'pending';

-- Repositories whose row is gone and whose directory is to go. Without foreign keys: it outlives what it tells about.
CREATE TABLE repo_purges (
    repo_id    BIGINT PRIMARY KEY NOT NULL,
    slug       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- An owner's deleted repositories, and the sweep's way through all of them.
CREATE INDEX repos_deleted_of_owner ON repos (owner_id, id) WHERE deleted_at IS NOT NULL;
-- How often a repository was renamed lately.
CREATE INDEX audit_log_renames ON audit_log (repo_id, created_at) WHERE action = 'repo_renamed';
