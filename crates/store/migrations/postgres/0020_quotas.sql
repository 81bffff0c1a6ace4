-- Bytes of git data that each signed repository was charged with: those that its own states brought.
ALTER TABLE nostr_repos ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE nostr_repos SET bytes = (SELECT r.size_bytes FROM repos r WHERE r.id = nostr_repos.repo_id);

-- Bytes of git data that a patch or pull request brought into repositories of others. They count for its author.
CREATE TABLE nostr_proposal_bytes (
    event_id BYTEA NOT NULL PRIMARY KEY REFERENCES nostr_events (event_id) ON DELETE CASCADE,
    pubkey   BYTEA NOT NULL,
    bytes    BIGINT NOT NULL
);

-- Usage of each key. Triggers keep it, so that every way in and out of the tables below counts, cascades too.
CREATE TABLE nostr_keys (
    pubkey        BYTEA NOT NULL PRIMARY KEY,
    -- Events that are stored, and their bytes.
    events        BIGINT NOT NULL DEFAULT 0,
    bytes         BIGINT NOT NULL DEFAULT 0,
    -- Events in purgatory, and their bytes.
    waiting       BIGINT NOT NULL DEFAULT 0,
    waiting_bytes BIGINT NOT NULL DEFAULT 0,
    -- Signed repositories, and bytes of git data.
    repos         BIGINT NOT NULL DEFAULT 0,
    repo_bytes    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX nostr_keys_waiting ON nostr_keys (waiting_bytes) WHERE waiting_bytes > 0;
CREATE INDEX nostr_keys_empty ON nostr_keys (pubkey) WHERE events = 0 AND waiting = 0 AND repos = 0 AND repo_bytes = 0;

-- Bytes that strangers sent from each network on each day since 1970.
CREATE TABLE nostr_addresses (
    address TEXT NOT NULL,
    day     BIGINT NOT NULL,
    bytes   BIGINT NOT NULL,
    PRIMARY KEY (address, day)
);
CREATE INDEX nostr_addresses_by_day ON nostr_addresses (day);

INSERT INTO nostr_keys (pubkey, events, bytes, waiting, waiting_bytes, repos, repo_bytes)
SELECT pubkey, sum(events), sum(bytes), sum(waiting), sum(waiting_bytes), sum(repos), sum(repo_bytes) FROM (
    SELECT pubkey, 1 AS events, octet_length(json) AS bytes, 0 AS waiting, 0 AS waiting_bytes, 0 AS repos,
        CAST(0 AS BIGINT) AS repo_bytes
    FROM nostr_events
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_announcements
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_states
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_attached
    UNION ALL SELECT pubkey, 0, 0, 1, octet_length(json), 0, 0 FROM purgatory_proposals WHERE pubkey IS NOT NULL
    UNION ALL SELECT pubkey, 0, 0, 0, 0, 1, bytes FROM nostr_repos
) kept GROUP BY pubkey;

-- Many events are stored by one statement: their keys are counted by one statement too, in one order, so that two
-- writers do not wait for each other.
CREATE FUNCTION nostr_events_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO nostr_keys AS k (pubkey, events, bytes)
        SELECT c.pubkey, count(*), sum(octet_length(c.json)) FROM changed c GROUP BY c.pubkey ORDER BY c.pubkey
        ON CONFLICT (pubkey) DO UPDATE SET events = k.events + excluded.events, bytes = k.bytes + excluded.bytes;
    ELSE
        UPDATE nostr_keys k SET events = k.events - c.events, bytes = k.bytes - c.bytes
        FROM (SELECT pubkey, count(*) AS events, sum(octet_length(json)) AS bytes FROM changed GROUP BY pubkey) c
        WHERE k.pubkey = c.pubkey;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER nostr_events_stored AFTER INSERT ON nostr_events
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION nostr_events_count();
CREATE TRIGGER nostr_events_removed AFTER DELETE ON nostr_events
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION nostr_events_count();

CREATE FUNCTION nostr_keys_add(of_key BYTEA, more BIGINT, more_bytes BIGINT, more_repos BIGINT, more_repo_bytes BIGINT)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO nostr_keys AS k (pubkey, waiting, waiting_bytes, repos, repo_bytes)
    SELECT of_key, more, more_bytes, more_repos, more_repo_bytes WHERE of_key IS NOT NULL
    ON CONFLICT (pubkey) DO UPDATE SET waiting = k.waiting + excluded.waiting,
        waiting_bytes = k.waiting_bytes + excluded.waiting_bytes, repos = k.repos + excluded.repos,
        repo_bytes = k.repo_bytes + excluded.repo_bytes;
$$;

-- What waits. A commit that waits for its event has no author yet, and counts for nobody.
CREATE FUNCTION purgatory_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM nostr_keys_add(OLD.pubkey, -1, -octet_length(OLD.json), 0, 0);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM nostr_keys_add(NEW.pubkey, 1, octet_length(NEW.json), 0, 0);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER purgatory_announcements_count AFTER INSERT OR DELETE OR UPDATE OF json ON purgatory_announcements
    FOR EACH ROW EXECUTE FUNCTION purgatory_count();
CREATE TRIGGER purgatory_states_count AFTER INSERT OR DELETE ON purgatory_states
    FOR EACH ROW EXECUTE FUNCTION purgatory_count();
CREATE TRIGGER purgatory_attached_count AFTER INSERT OR DELETE ON purgatory_attached
    FOR EACH ROW EXECUTE FUNCTION purgatory_count();
CREATE TRIGGER purgatory_proposals_count AFTER INSERT OR DELETE OR UPDATE OF pubkey, json ON purgatory_proposals
    FOR EACH ROW EXECUTE FUNCTION purgatory_count();

CREATE FUNCTION nostr_repos_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM nostr_keys_add(OLD.pubkey, 0, 0, -1, -OLD.bytes);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM nostr_keys_add(NEW.pubkey, 0, 0, 1, NEW.bytes);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER nostr_repos_count AFTER INSERT OR DELETE OR UPDATE OF bytes ON nostr_repos
    FOR EACH ROW EXECUTE FUNCTION nostr_repos_count();

CREATE FUNCTION nostr_proposal_bytes_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM nostr_keys_add(OLD.pubkey, 0, 0, 0, -OLD.bytes);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM nostr_keys_add(NEW.pubkey, 0, 0, 0, NEW.bytes);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER nostr_proposal_bytes_count AFTER INSERT OR DELETE OR UPDATE OF bytes ON nostr_proposal_bytes
    FOR EACH ROW EXECUTE FUNCTION nostr_proposal_bytes_count();
