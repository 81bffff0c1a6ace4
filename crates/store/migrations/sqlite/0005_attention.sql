-- What people keep an eye on. The counters of a repository tell how many do whose account is not suspended. Triggers keep
-- them right, whatever writes here: rows that come, change and go, and accounts that are suspended, readmitted and removed.
CREATE TABLE stars (
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    repo_id    BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    starred_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, repo_id)
);
CREATE INDEX stars_by_repo ON stars (repo_id, starred_at, user_id);
CREATE INDEX stars_by_user ON stars (user_id, starred_at, repo_id);

-- No row means the same as 'participating', but is not counted.
CREATE TABLE watches (
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    repo_id    BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    level      TEXT NOT NULL CHECK (level IN ('all', 'participating', 'ignore')),
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, repo_id)
);
CREATE INDEX watches_by_repo ON watches (repo_id, updated_at, user_id);
CREATE INDEX watches_by_user ON watches (user_id, updated_at, repo_id);

CREATE TABLE follows (
    follower_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    followed_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    followed_at BIGINT NOT NULL,
    PRIMARY KEY (follower_id, followed_id),
    CHECK (follower_id <> followed_id)
);
CREATE INDEX follows_by_follower ON follows (follower_id, followed_at, followed_id);
CREATE INDEX follows_by_followed ON follows (followed_id, followed_at, follower_id);

CREATE TRIGGER stars_count_inc AFTER INSERT ON stars
WHEN (SELECT suspended_at FROM users WHERE id = NEW.user_id) IS NULL
BEGIN
    UPDATE repos SET star_count = star_count + 1 WHERE id = NEW.repo_id;
END;

CREATE TRIGGER stars_count_dec AFTER DELETE ON stars
WHEN (SELECT suspended_at FROM users WHERE id = OLD.user_id) IS NULL
BEGIN
    UPDATE repos SET star_count = max(star_count - 1, 0) WHERE id = OLD.repo_id;
END;

CREATE TRIGGER watches_count_inc AFTER INSERT ON watches
WHEN NEW.level <> 'ignore' AND (SELECT suspended_at FROM users WHERE id = NEW.user_id) IS NULL
BEGIN
    UPDATE repos SET watcher_count = watcher_count + 1 WHERE id = NEW.repo_id;
END;

CREATE TRIGGER watches_count_change AFTER UPDATE OF level ON watches
WHEN (NEW.level = 'ignore') <> (OLD.level = 'ignore')
    AND (SELECT suspended_at FROM users WHERE id = NEW.user_id) IS NULL
BEGIN
    UPDATE repos SET watcher_count = max(watcher_count + CASE NEW.level WHEN 'ignore' THEN -1 ELSE 1 END, 0)
        WHERE id = NEW.repo_id;
END;

CREATE TRIGGER watches_count_dec AFTER DELETE ON watches
WHEN OLD.level <> 'ignore' AND (SELECT suspended_at FROM users WHERE id = OLD.user_id) IS NULL
BEGIN
    UPDATE repos SET watcher_count = max(watcher_count - 1, 0) WHERE id = OLD.repo_id;
END;

CREATE TRIGGER users_suspension_counts AFTER UPDATE OF suspended_at ON users
WHEN (NEW.suspended_at IS NULL) <> (OLD.suspended_at IS NULL)
BEGIN
    UPDATE repos SET star_count = max(star_count + CASE WHEN NEW.suspended_at IS NULL THEN 1 ELSE -1 END, 0)
        WHERE id IN (SELECT repo_id FROM stars WHERE user_id = NEW.id);
    UPDATE repos SET watcher_count = max(watcher_count + CASE WHEN NEW.suspended_at IS NULL THEN 1 ELSE -1 END, 0)
        WHERE id IN (SELECT repo_id FROM watches WHERE user_id = NEW.id AND level <> 'ignore');
END;

-- While the account is still there to tell whether its rows count.
CREATE TRIGGER users_removal_counts BEFORE DELETE ON users
BEGIN
    DELETE FROM stars WHERE user_id = OLD.id;
    DELETE FROM watches WHERE user_id = OLD.id;
END;
