-- Who is asked to review hears of it too.
ALTER TABLE issue_subscriptions DROP CONSTRAINT issue_subscriptions_reason_check;
ALTER TABLE issue_subscriptions ADD CONSTRAINT issue_subscriptions_reason_check
    CHECK (reason IN ('author', 'comment', 'mention', 'assign', 'review_requested', 'manual'));

-- Who was named where. A subscription keeps only the first reason, so it cannot tell.
CREATE TABLE issue_mentions (
    issue_id   BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issue_id, user_id)
);
CREATE INDEX issue_mentions_by_user ON issue_mentions (user_id, issue_id);
INSERT INTO issue_mentions (issue_id, user_id, created_at)
    SELECT issue_id, user_id, updated_at FROM issue_subscriptions WHERE reason = 'mention';

-- Lists across repositories begin with what changed last, of everyone or of one author.
CREATE INDEX issues_by_time ON issues (updated_at, id);
DROP INDEX issues_by_author;
CREATE INDEX issues_by_author ON issues (author_id, updated_at, id) WHERE author_id IS NOT NULL;
CREATE INDEX comments_by_update ON comments (repo_id, updated_at, id);
