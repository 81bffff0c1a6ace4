-- How many steps an event that waits with an announcement or a pull request is from a repository, as `nostr_indirect` has
-- it of those that are served. Rows from before count as near.
ALTER TABLE purgatory_attached ADD COLUMN steps BIGINT NOT NULL DEFAULT 0;
