-- Signing up, logging in, and proving who one is.

ALTER TABLE users ADD COLUMN bio TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN website TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN location TEXT NOT NULL DEFAULT '';
CREATE INDEX users_admins ON users (id) WHERE site_admin;

CREATE INDEX emails_by_user ON emails (user_id, id);

-- An old name leads to its holder, and only they may take it again until an admin releases it.
CREATE TABLE user_redirects (
    old_name   TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
);
CREATE INDEX user_redirects_by_user ON user_redirects (user_id);

-- Only the hash of the cookie is kept.
CREATE TABLE sessions (
    hash         BYTEA PRIMARY KEY NOT NULL,
    user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    ip           TEXT,
    agent        TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, last_seen_at);
CREATE INDEX sessions_ended ON sessions (expires_at);

-- Links that are good once: verify an address, reset a password, make the first admin, accept an invitation.
-- `address` is where an invitation was sent to, `created_by` who invited.
CREATE TABLE one_time_links (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       BYTEA NOT NULL UNIQUE,
    purpose    TEXT NOT NULL CHECK (purpose IN ('verify', 'reset', 'setup', 'invite')),
    user_id    BIGINT REFERENCES users (id) ON DELETE CASCADE,
    email_id   BIGINT REFERENCES emails (id) ON DELETE CASCADE,
    address    TEXT,
    created_by BIGINT REFERENCES users (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);
CREATE INDEX one_time_links_by_user ON one_time_links (user_id);
CREATE INDEX one_time_links_by_email ON one_time_links (email_id);
CREATE INDEX one_time_links_by_creator ON one_time_links (created_by);
CREATE INDEX one_time_links_by_purpose ON one_time_links (purpose, expires_at);
CREATE INDEX one_time_links_ended ON one_time_links (expires_at);

-- The secret is sealed with the installation's key. `last_step` keeps a code from being used twice.
CREATE TABLE totp (
    user_id      BIGINT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    secret       BYTEA NOT NULL,
    confirmed_at BIGINT,
    last_step    BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE recovery_codes (
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    hash    BYTEA NOT NULL,
    used_at BIGINT,
    PRIMARY KEY (user_id, hash)
);

-- How often something was done in the present window, by whatever it is counted.
CREATE TABLE throttles (
    scope        TEXT NOT NULL,
    identifier   TEXT NOT NULL,
    window_start BIGINT NOT NULL,
    count        BIGINT NOT NULL,
    PRIMARY KEY (scope, identifier)
);
CREATE INDEX throttles_old ON throttles (window_start);
