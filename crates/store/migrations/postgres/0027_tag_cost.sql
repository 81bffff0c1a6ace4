-- The quota of a key counts the index rows of its events too: 128 bytes for each tag. In the JSON of an event every tag begins
-- with `["`, and nothing else does, because quotes inside strings are escaped.
CREATE FUNCTION nostr_event_cost(event TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(octet_length(event) + 64 * (length(event) - length(replace(event, '["', ''))) AS BIGINT)
$$;

CREATE OR REPLACE FUNCTION nostr_events_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO nostr_keys AS k (pubkey, events, bytes)
        SELECT c.pubkey, count(*), sum(nostr_event_cost(c.json)) FROM changed c GROUP BY c.pubkey ORDER BY c.pubkey
        ON CONFLICT (pubkey) DO UPDATE SET events = k.events + excluded.events, bytes = k.bytes + excluded.bytes;
    ELSE
        UPDATE nostr_keys k SET events = k.events - c.events, bytes = k.bytes - c.bytes
        FROM (SELECT pubkey, count(*) AS events, sum(nostr_event_cost(json)) AS bytes FROM changed GROUP BY pubkey) c
        WHERE k.pubkey = c.pubkey;
    END IF;
    RETURN NULL;
END $$;

UPDATE nostr_keys SET bytes = counted.bytes FROM (
    SELECT pubkey, sum(nostr_event_cost(json)) AS bytes FROM nostr_events GROUP BY pubkey) AS counted
WHERE nostr_keys.pubkey = counted.pubkey;
