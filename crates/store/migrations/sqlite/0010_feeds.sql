-- Whether feeds tell of an event. They are read from the log itself, newest first, by one of these ways.
ALTER TABLE domain_events ADD COLUMN told BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE domain_events SET told = TRUE WHERE kind IN ('repo_created', 'repo_forked', 'push', 'star', 'follow', 'repo_renamed', 'repo_transfer_accepted', 'repo_archived',
    'repo_unarchived', 'repo_visibility_changed', 'repo_restored', 'issue_created', 'issue_closed', 'issue_reopened',
    'issue_comment_created');
CREATE INDEX domain_events_told ON domain_events (seq) WHERE told;
CREATE INDEX domain_events_told_in_public ON domain_events (seq) WHERE told AND public;
CREATE INDEX domain_events_told_by_repo ON domain_events (repo_id, seq) WHERE told;
CREATE INDEX domain_events_told_by_actor ON domain_events (actor_user_id, seq) WHERE told;
-- What makes a repository popular.
CREATE INDEX domain_events_of_liking ON domain_events (created_at, repo_id, actor_user_id)
    WHERE kind IN ('star', 'unstar', 'repo_forked');

-- Which repositories were popular when it was last counted.
CREATE TABLE trending (
    period     TEXT NOT NULL CHECK (period IN ('day', 'week', 'month')),
    repo_id    BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    score      BIGINT NOT NULL,
    counted_at BIGINT NOT NULL,
    PRIMARY KEY (period, repo_id)
);
CREATE INDEX trending_by_repo ON trending (repo_id);
