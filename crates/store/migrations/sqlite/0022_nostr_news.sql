-- People are told of threads that came by nostr too. SQLite cannot change a check, so both tables are made anew; the
-- numbers of threads stand in addresses, so none is given twice.
CREATE TABLE notification_threads_new (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    repo_id      BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL CHECK (subject_kind IN ('issue', 'repo', 'nostr_thread')),
    subject_id   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (repo_id, subject_kind, subject_id)
);
INSERT INTO notification_threads_new (id, repo_id, subject_kind, subject_id, created_at, updated_at)
    SELECT id, repo_id, subject_kind, subject_id, created_at, updated_at FROM notification_threads;
DELETE FROM sqlite_sequence WHERE name = 'notification_threads_new';
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'notification_threads_new', seq FROM sqlite_sequence WHERE name = 'notification_threads';
CREATE TABLE notifications_new (
    user_id     BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    thread_id   BIGINT NOT NULL REFERENCES notification_threads_new (id) ON DELETE CASCADE,
    title       TEXT NOT NULL,
    reason      TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('unread', 'read', 'done')),
    private     BOOLEAN NOT NULL,
    last_seq    BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    read_at     BIGINT,
    muted_at    BIGINT,
    mail_due_at BIGINT,
    mail_events BIGINT NOT NULL DEFAULT 0,
    mailed_at   BIGINT,
    PRIMARY KEY (user_id, thread_id)
);
INSERT INTO notifications_new (user_id, thread_id, title, reason, state, private, last_seq, updated_at, read_at, muted_at,
        mail_due_at, mail_events, mailed_at)
    SELECT user_id, thread_id, title, reason, state, private, last_seq, updated_at, read_at, muted_at,
        mail_due_at, mail_events, mailed_at FROM notifications;
DROP TABLE notifications;
DROP TABLE notification_threads;
ALTER TABLE notification_threads_new RENAME TO notification_threads;
ALTER TABLE notifications_new RENAME TO notifications;
CREATE INDEX notifications_by_thread ON notifications (thread_id, user_id);
CREATE INDEX notifications_inbox ON notifications (user_id, updated_at, thread_id);
CREATE INDEX notifications_unread ON notifications (user_id, updated_at, thread_id) WHERE state = 'unread';
CREATE INDEX notifications_mail_due ON notifications (mail_due_at) WHERE mail_due_at IS NOT NULL;

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
