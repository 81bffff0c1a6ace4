-- The quota of a key counts the index rows of its events too: 128 bytes for each tag. In the JSON of an event every tag begins
-- with `["`, and nothing else does, because quotes inside strings are escaped.
DROP TRIGGER nostr_events_stored;
DROP TRIGGER nostr_events_removed;
CREATE TRIGGER nostr_events_stored AFTER INSERT ON nostr_events BEGIN
    INSERT INTO nostr_keys (pubkey, events, bytes)
    VALUES (NEW.pubkey, 1, octet_length(NEW.json) + 64 * (length(NEW.json) - length(replace(NEW.json, '["', ''))))
    ON CONFLICT (pubkey) DO UPDATE SET events = events + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER nostr_events_removed AFTER DELETE ON nostr_events BEGIN
    UPDATE nostr_keys SET events = events - 1,
        bytes = bytes - (octet_length(OLD.json) + 64 * (length(OLD.json) - length(replace(OLD.json, '["', ''))))
    WHERE pubkey = OLD.pubkey;
END;

UPDATE nostr_keys SET bytes = counted.bytes FROM (
    SELECT pubkey, sum(octet_length(json) + 64 * (length(json) - length(replace(json, '["', '')))) AS bytes
    FROM nostr_events GROUP BY pubkey) AS counted
WHERE nostr_keys.pubkey = counted.pubkey;
