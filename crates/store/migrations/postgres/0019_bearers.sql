-- A name keeps every repository that bore it, with the instant at which it left the name.
ALTER TABLE repo_redirects RENAME COLUMN created_at TO left_at;
ALTER TABLE repo_redirects DROP CONSTRAINT repo_redirects_old_owner_id_old_name_key;
ALTER TABLE repo_redirects ADD UNIQUE (old_owner_id, old_name, repo_id);
CREATE INDEX repo_redirects_by_name ON repo_redirects (old_owner_id, old_name, left_at, id);
DROP INDEX repo_redirects_by_repo;
CREATE INDEX repo_redirects_by_repo ON repo_redirects (repo_id, left_at, id);

-- How often a server stopped while it ran the job. That is no try of the job.
ALTER TABLE jobs ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0;

-- An account that was deleted: its row stays for as long as something refers to it, without a name and without any way
-- to log in.
ALTER TABLE users ADD COLUMN deleted_at BIGINT;
