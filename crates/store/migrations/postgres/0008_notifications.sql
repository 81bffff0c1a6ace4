-- What people are told about: an issue, or what happens to a repository itself.
CREATE TABLE notification_threads (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo_id      BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL CHECK (subject_kind IN ('issue', 'repo')),
    subject_id   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (repo_id, subject_kind, subject_id)
);

-- A row per person and thread, so a thread is told once however much happens in it. `title` is theirs, because not
-- everyone hears of everything in a thread. `last_seq` is the last event that
-- reached them: one that comes again has no effect. `private` is whether that happened out of the public's sight.
-- Mail: what is to be mailed is due at `mail_due_at` and tells of `mail_events`; `mailed_at` is when the last one went.
CREATE TABLE notifications (
    user_id     BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    thread_id   BIGINT NOT NULL REFERENCES notification_threads (id) ON DELETE CASCADE,
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
CREATE INDEX notifications_by_thread ON notifications (thread_id, user_id);
CREATE INDEX notifications_inbox ON notifications (user_id, updated_at, thread_id);
CREATE INDEX notifications_unread ON notifications (user_id, updated_at, thread_id) WHERE state = 'unread';
CREATE INDEX notifications_mail_due ON notifications (mail_due_at) WHERE mail_due_at IS NOT NULL;

-- The reasons for which someone does not want mail.
CREATE TABLE mail_opt_outs (
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    reason     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, reason)
);

-- Everyone who is told all about a repository, in the order in which they are gone through.
CREATE INDEX watches_told ON watches (repo_id, user_id) WHERE level = 'all';
