-- Bytes of git data that each signed repository was charged with: those that its own states brought.
ALTER TABLE nostr_repos ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE nostr_repos SET bytes = (SELECT r.size_bytes FROM repos r WHERE r.id = nostr_repos.repo_id);

-- Bytes of git data that a patch or pull request brought into repositories of others. They count for its author.
CREATE TABLE nostr_proposal_bytes (
    event_id BLOB NOT NULL PRIMARY KEY REFERENCES nostr_events (event_id) ON DELETE CASCADE,
    pubkey   BLOB NOT NULL,
    bytes    BIGINT NOT NULL
) WITHOUT ROWID;

-- Usage of each key. Triggers keep it, so that every way in and out of the tables below counts, cascades too.
CREATE TABLE nostr_keys (
    pubkey        BLOB NOT NULL PRIMARY KEY,
    -- Events that are stored, and their bytes.
    events        BIGINT NOT NULL DEFAULT 0,
    bytes         BIGINT NOT NULL DEFAULT 0,
    -- Events in purgatory, and their bytes.
    waiting       BIGINT NOT NULL DEFAULT 0,
    waiting_bytes BIGINT NOT NULL DEFAULT 0,
    -- Signed repositories, and bytes of git data.
    repos         BIGINT NOT NULL DEFAULT 0,
    repo_bytes    BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX nostr_keys_waiting ON nostr_keys (waiting_bytes) WHERE waiting_bytes > 0;
CREATE INDEX nostr_keys_empty ON nostr_keys (pubkey) WHERE events = 0 AND waiting = 0 AND repos = 0 AND repo_bytes = 0;

-- Bytes that strangers sent from each network on each day since 1970.
CREATE TABLE nostr_addresses (
    address TEXT NOT NULL,
    day     BIGINT NOT NULL,
    bytes   BIGINT NOT NULL,
    PRIMARY KEY (address, day)
) WITHOUT ROWID;
CREATE INDEX nostr_addresses_by_day ON nostr_addresses (day);

INSERT INTO nostr_keys (pubkey, events, bytes, waiting, waiting_bytes, repos, repo_bytes)
SELECT pubkey, sum(events), sum(bytes), sum(waiting), sum(waiting_bytes), sum(repos), sum(repo_bytes) FROM (
    SELECT pubkey, 1 AS events, octet_length(json) AS bytes, 0 AS waiting, 0 AS waiting_bytes, 0 AS repos, 0 AS repo_bytes
    FROM nostr_events
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_announcements
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_states
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_attached
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_proposals WHERE pubkey IS NOT NULL
    UNION ALL SELECT pubkey, 0, 0, 0, 0, 1, bytes FROM nostr_repos
) GROUP BY pubkey;

CREATE TRIGGER nostr_events_stored AFTER INSERT ON nostr_events BEGIN
    INSERT INTO nostr_keys (pubkey, events, bytes) VALUES (NEW.pubkey, 1, octet_length(NEW.json))
    ON CONFLICT (pubkey) DO UPDATE SET events = events + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER nostr_events_removed AFTER DELETE ON nostr_events BEGIN
    UPDATE nostr_keys SET events = events - 1, bytes = bytes - octet_length(OLD.json) WHERE pubkey = OLD.pubkey;
END;

CREATE TRIGGER purgatory_announcements_put AFTER INSERT ON purgatory_announcements BEGIN
    INSERT INTO nostr_keys (pubkey, waiting, waiting_bytes) VALUES (NEW.pubkey, 1, octet_length(NEW.json))
    ON CONFLICT (pubkey) DO UPDATE SET waiting = waiting + 1, waiting_bytes = waiting_bytes + excluded.waiting_bytes;
END;
CREATE TRIGGER purgatory_announcements_replaced AFTER UPDATE OF json ON purgatory_announcements BEGIN
    UPDATE nostr_keys SET waiting_bytes = waiting_bytes + octet_length(NEW.json) - octet_length(OLD.json)
    WHERE pubkey = NEW.pubkey;
END;
CREATE TRIGGER purgatory_announcements_taken AFTER DELETE ON purgatory_announcements BEGIN
    UPDATE nostr_keys SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(OLD.json)
    WHERE pubkey = OLD.pubkey;
END;

CREATE TRIGGER purgatory_states_put AFTER INSERT ON purgatory_states BEGIN
    INSERT INTO nostr_keys (pubkey, waiting, waiting_bytes) VALUES (NEW.pubkey, 1, octet_length(NEW.json))
    ON CONFLICT (pubkey) DO UPDATE SET waiting = waiting + 1, waiting_bytes = waiting_bytes + excluded.waiting_bytes;
END;
CREATE TRIGGER purgatory_states_taken AFTER DELETE ON purgatory_states BEGIN
    UPDATE nostr_keys SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(OLD.json)
    WHERE pubkey = OLD.pubkey;
END;

CREATE TRIGGER purgatory_attached_put AFTER INSERT ON purgatory_attached BEGIN
    INSERT INTO nostr_keys (pubkey, waiting, waiting_bytes) VALUES (NEW.pubkey, 1, octet_length(NEW.json))
    ON CONFLICT (pubkey) DO UPDATE SET waiting = waiting + 1, waiting_bytes = waiting_bytes + excluded.waiting_bytes;
END;
CREATE TRIGGER purgatory_attached_taken AFTER DELETE ON purgatory_attached BEGIN
    UPDATE nostr_keys SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(OLD.json)
    WHERE pubkey = OLD.pubkey;
END;

-- A commit that waits for its event has no author yet.
CREATE TRIGGER purgatory_proposals_put AFTER INSERT ON purgatory_proposals WHEN NEW.pubkey IS NOT NULL BEGIN
    INSERT INTO nostr_keys (pubkey, waiting, waiting_bytes) VALUES (NEW.pubkey, 1, octet_length(NEW.json))
    ON CONFLICT (pubkey) DO UPDATE SET waiting = waiting + 1, waiting_bytes = waiting_bytes + excluded.waiting_bytes;
END;
CREATE TRIGGER purgatory_proposals_replaced AFTER UPDATE OF pubkey, json ON purgatory_proposals BEGIN
    UPDATE nostr_keys SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(OLD.json)
    WHERE pubkey = OLD.pubkey;
    INSERT INTO nostr_keys (pubkey, waiting, waiting_bytes)
    SELECT NEW.pubkey, 1, octet_length(NEW.json) WHERE NEW.pubkey IS NOT NULL
    ON CONFLICT (pubkey) DO UPDATE SET waiting = waiting + 1, waiting_bytes = waiting_bytes + excluded.waiting_bytes;
END;
CREATE TRIGGER purgatory_proposals_taken AFTER DELETE ON purgatory_proposals BEGIN
    UPDATE nostr_keys SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(OLD.json)
    WHERE pubkey = OLD.pubkey;
END;

CREATE TRIGGER nostr_repos_made AFTER INSERT ON nostr_repos BEGIN
    INSERT INTO nostr_keys (pubkey, repos, repo_bytes) VALUES (NEW.pubkey, 1, NEW.bytes)
    ON CONFLICT (pubkey) DO UPDATE SET repos = repos + 1, repo_bytes = repo_bytes + excluded.repo_bytes;
END;
CREATE TRIGGER nostr_repos_grown AFTER UPDATE OF bytes ON nostr_repos BEGIN
    UPDATE nostr_keys SET repo_bytes = repo_bytes + NEW.bytes - OLD.bytes WHERE pubkey = NEW.pubkey;
END;
CREATE TRIGGER nostr_repos_gone AFTER DELETE ON nostr_repos BEGIN
    UPDATE nostr_keys SET repos = repos - 1, repo_bytes = repo_bytes - OLD.bytes WHERE pubkey = OLD.pubkey;
END;

CREATE TRIGGER nostr_proposal_bytes_added AFTER INSERT ON nostr_proposal_bytes BEGIN
    INSERT INTO nostr_keys (pubkey, repo_bytes) VALUES (NEW.pubkey, NEW.bytes)
    ON CONFLICT (pubkey) DO UPDATE SET repo_bytes = repo_bytes + excluded.repo_bytes;
END;
CREATE TRIGGER nostr_proposal_bytes_grown AFTER UPDATE OF bytes ON nostr_proposal_bytes BEGIN
    UPDATE nostr_keys SET repo_bytes = repo_bytes + NEW.bytes - OLD.bytes WHERE pubkey = NEW.pubkey;
END;
CREATE TRIGGER nostr_proposal_bytes_gone AFTER DELETE ON nostr_proposal_bytes BEGIN
    UPDATE nostr_keys SET repo_bytes = repo_bytes - OLD.bytes WHERE pubkey = OLD.pubkey;
END;
