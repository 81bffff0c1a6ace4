-- A name keeps every repository that bore it, with the instant at which it left the name. SQLite cannot drop a unique
-- constraint, so the table is made anew.
CREATE TABLE repo_redirects_anew (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    old_owner_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    old_name     TEXT NOT NULL,
    repo_id      BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    left_at      BIGINT NOT NULL,
    last_used_at BIGINT,
    UNIQUE (old_owner_id, old_name, repo_id)
);
INSERT INTO repo_redirects_anew (id, old_owner_id, old_name, repo_id, left_at, last_used_at)
    SELECT id, old_owner_id, old_name, repo_id, created_at, last_used_at FROM repo_redirects;
DROP TABLE repo_redirects;
ALTER TABLE repo_redirects_anew RENAME TO repo_redirects;
CREATE INDEX repo_redirects_by_name ON repo_redirects (old_owner_id, old_name, left_at, id);
CREATE INDEX repo_redirects_by_repo ON repo_redirects (repo_id, left_at, id);

-- How often a server stopped while it ran the job. That is no try of the job.
ALTER TABLE jobs ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0;

-- An account that was deleted: its row stays for as long as something refers to it, without a name and without any way
-- to log in.
ALTER TABLE users ADD COLUMN deleted_at BIGINT;
