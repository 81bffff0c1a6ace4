-- When someone last proved, in this login, that it is really them: by their password or their key. None: when they
-- logged in.
ALTER TABLE sessions ADD COLUMN confirmed_at BIGINT;
