-- The words a repository can be found by, in the order in which its people gave them.
CREATE TABLE repo_topics (
    repo_id  BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    topic    TEXT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (repo_id, topic)
);
CREATE INDEX repo_topics_by_topic ON repo_topics (topic, repo_id);

-- A search looks at what changed last and stops at a limit.
CREATE INDEX repos_by_update ON repos (updated_at, id) WHERE deleted_at IS NULL;
