-- People are told of threads that came by nostr too.
ALTER TABLE notification_threads DROP CONSTRAINT notification_threads_subject_kind_check;
ALTER TABLE notification_threads ADD CONSTRAINT notification_threads_subject_kind_check
    CHECK (subject_kind IN ('issue', 'repo', 'nostr_thread'));

-- Events that people are told of: those that begin a thread, and comments. `root` is the event that begins the thread.
-- The row goes with its event, so text that an author deleted is told to nobody.
CREATE TABLE nostr_news (
    n       BIGINT NOT NULL PRIMARY KEY REFERENCES nostr_events (n) ON DELETE CASCADE,
    root    BIGINT NOT NULL REFERENCES nostr_events (n) ON DELETE CASCADE,
    -- The account of the author's key.
    user_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
    -- Empty for comments.
    title   TEXT NOT NULL,
    excerpt TEXT NOT NULL
);
CREATE INDEX nostr_news_by_root ON nostr_news (root, user_id);
CREATE INDEX nostr_news_by_user ON nostr_news (user_id) WHERE user_id IS NOT NULL;
