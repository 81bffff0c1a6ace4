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

-- Whether what an account does counts. The account cannot be suspended or readmitted until the transaction ends, so that
-- neither side misses what the other is about to commit.
CREATE FUNCTION user_counts(account BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    suspended BIGINT;
BEGIN
    SELECT suspended_at INTO suspended FROM users WHERE id = account FOR SHARE;
    RETURN suspended IS NULL;
END $$;

CREATE FUNCTION stars_count_inc() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF user_counts(NEW.user_id) THEN
        UPDATE repos SET star_count = star_count + 1 WHERE id = NEW.repo_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER stars_count_inc AFTER INSERT ON stars FOR EACH ROW EXECUTE FUNCTION stars_count_inc();

-- What goes with its repository has nothing to count, and locks nobody.
CREATE FUNCTION stars_count_dec() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM repos WHERE id = OLD.repo_id) AND user_counts(OLD.user_id) THEN
        UPDATE repos SET star_count = GREATEST(star_count - 1, 0) WHERE id = OLD.repo_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER stars_count_dec AFTER DELETE ON stars FOR EACH ROW EXECUTE FUNCTION stars_count_dec();

CREATE FUNCTION watches_count_inc() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF user_counts(NEW.user_id) THEN
        UPDATE repos SET watcher_count = watcher_count + 1 WHERE id = NEW.repo_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER watches_count_inc AFTER INSERT ON watches FOR EACH ROW
    WHEN (NEW.level <> 'ignore') EXECUTE FUNCTION watches_count_inc();

CREATE FUNCTION watches_count_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF user_counts(NEW.user_id) THEN
        UPDATE repos SET watcher_count = GREATEST(watcher_count + CASE NEW.level WHEN 'ignore' THEN -1 ELSE 1 END, 0)
            WHERE id = NEW.repo_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER watches_count_change AFTER UPDATE OF level ON watches FOR EACH ROW
    WHEN ((NEW.level = 'ignore') <> (OLD.level = 'ignore')) EXECUTE FUNCTION watches_count_change();

CREATE FUNCTION watches_count_dec() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM repos WHERE id = OLD.repo_id) AND user_counts(OLD.user_id) THEN
        UPDATE repos SET watcher_count = GREATEST(watcher_count - 1, 0) WHERE id = OLD.repo_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER watches_count_dec AFTER DELETE ON watches FOR EACH ROW
    WHEN (OLD.level <> 'ignore') EXECUTE FUNCTION watches_count_dec();

CREATE FUNCTION users_suspension_counts() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    change BIGINT := CASE WHEN NEW.suspended_at IS NULL THEN 1 ELSE -1 END;
BEGIN
    UPDATE repos SET star_count = GREATEST(star_count + change, 0)
        WHERE id IN (SELECT repo_id FROM stars WHERE user_id = NEW.id);
    UPDATE repos SET watcher_count = GREATEST(watcher_count + change, 0)
        WHERE id IN (SELECT repo_id FROM watches WHERE user_id = NEW.id AND level <> 'ignore');
    RETURN NULL;
END $$;
CREATE TRIGGER users_suspension_counts AFTER UPDATE OF suspended_at ON users FOR EACH ROW
    WHEN ((NEW.suspended_at IS NULL) <> (OLD.suspended_at IS NULL)) EXECUTE FUNCTION users_suspension_counts();

-- While the account is still there to tell whether its rows count.
CREATE FUNCTION users_removal_counts() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM stars WHERE user_id = OLD.id;
    DELETE FROM watches WHERE user_id = OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER users_removal_counts BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION users_removal_counts();
