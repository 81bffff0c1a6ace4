-- What a repository's issues are counted by. Numbers are given from here, under the repository's lock, and never twice.
CREATE TABLE issue_counters (
    repo_id        BIGINT PRIMARY KEY NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    last_issue     BIGINT NOT NULL DEFAULT 0,
    last_milestone BIGINT NOT NULL DEFAULT 0,
    open_issues    BIGINT NOT NULL DEFAULT 0,
    closed_issues  BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE milestones (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id     BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    number      BIGINT NOT NULL,
    title       TEXT NOT NULL,
    folded      TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    state       TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    due_on      BIGINT,
    creator_id  BIGINT REFERENCES users (id) ON DELETE SET NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    closed_at   BIGINT,
    UNIQUE (repo_id, number),
    UNIQUE (repo_id, folded)
);
CREATE INDEX milestones_by_creator ON milestones (creator_id) WHERE creator_id IS NOT NULL;

CREATE TABLE issues (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id       BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    number        BIGINT NOT NULL,
    author_id     BIGINT REFERENCES users (id) ON DELETE SET NULL,
    title         TEXT NOT NULL,
    body          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    state_reason  TEXT CHECK (state_reason IN ('completed', 'not_planned', 'reopened')),
    closed_by     BIGINT REFERENCES users (id) ON DELETE SET NULL,
    closed_at     BIGINT,
    milestone_id  BIGINT REFERENCES milestones (id) ON DELETE SET NULL,
    comment_count BIGINT NOT NULL DEFAULT 0,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    edited_at     BIGINT,
    UNIQUE (repo_id, number)
);
CREATE INDEX issues_by_update ON issues (repo_id, updated_at, id);
CREATE INDEX issues_by_comments ON issues (repo_id, comment_count, id);
CREATE INDEX issues_by_milestone ON issues (milestone_id, state) WHERE milestone_id IS NOT NULL;
CREATE INDEX issues_by_author ON issues (author_id) WHERE author_id IS NOT NULL;
CREATE INDEX issues_by_closer ON issues (closed_by) WHERE closed_by IS NOT NULL;

CREATE TABLE comments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id    BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    issue_id   BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    author_id  BIGINT REFERENCES users (id) ON DELETE SET NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    edited_at  BIGINT
);
CREATE INDEX comments_by_issue ON comments (issue_id, id);
CREATE INDEX comments_by_repo ON comments (repo_id, id);
CREATE INDEX comments_by_author ON comments (author_id) WHERE author_id IS NOT NULL;

CREATE TABLE labels (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id     BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    folded      TEXT NOT NULL,
    color       TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    UNIQUE (repo_id, folded)
);

CREATE TABLE issue_labels (
    issue_id BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    label_id BIGINT NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
    PRIMARY KEY (issue_id, label_id)
);
CREATE INDEX issue_labels_by_label ON issue_labels (label_id, issue_id);

CREATE TABLE issue_assignees (
    issue_id   BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issue_id, user_id)
);
CREATE INDEX issue_assignees_by_user ON issue_assignees (user_id, issue_id);

-- Who wants to hear of an issue, and why; or who does not, although they would.
CREATE TABLE issue_subscriptions (
    issue_id   BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    subscribed BOOLEAN NOT NULL,
    reason     TEXT NOT NULL CHECK (reason IN ('author', 'comment', 'mention', 'assign', 'manual')),
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (issue_id, user_id)
);
CREATE INDEX issue_subscriptions_by_user ON issue_subscriptions (user_id, issue_id);

-- What happened to an issue, comments and references from elsewhere included, in order. `once` keeps one thing from
-- being told twice.
CREATE TABLE issue_events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    issue_id        BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    actor_id        BIGINT REFERENCES users (id) ON DELETE SET NULL,
    kind            TEXT NOT NULL,
    detail          TEXT NOT NULL,
    comment_id      BIGINT REFERENCES comments (id) ON DELETE CASCADE,
    source_repo_id  BIGINT REFERENCES repos (id) ON DELETE CASCADE,
    source_issue_id BIGINT REFERENCES issues (id) ON DELETE CASCADE,
    commit_id       TEXT,
    once            TEXT,
    created_at      BIGINT NOT NULL,
    UNIQUE (issue_id, once)
);
CREATE INDEX issue_events_by_issue ON issue_events (issue_id, id);
CREATE INDEX issue_events_by_actor ON issue_events (actor_id) WHERE actor_id IS NOT NULL;
CREATE INDEX issue_events_by_comment ON issue_events (comment_id) WHERE comment_id IS NOT NULL;
CREATE INDEX issue_events_by_source_repo ON issue_events (source_repo_id) WHERE source_repo_id IS NOT NULL;
CREATE INDEX issue_events_by_source_issue ON issue_events (source_issue_id) WHERE source_issue_id IS NOT NULL;
