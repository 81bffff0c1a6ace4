-- The event that a status is about. How far a thread is can then be told from columns, whatever the size of the events.
ALTER TABLE nostr_events ADD COLUMN status_of BYTEA;
-- The `e` tag that is marked as the root, else the first one. Tags are compared as they are written, because text with a NUL
-- cannot be taken out of JSON.
UPDATE nostr_events SET status_of = decode(COALESCE(
        (SELECT substring(CAST(t.tag AS TEXT) FROM '^\["e","([0-9a-f]{64})"')
            FROM json_array_elements(CAST(json AS JSON) -> 'tags') WITH ORDINALITY AS t (tag, place)
            WHERE CAST(t.tag AS TEXT) ~ '^\["e","[0-9a-f]{64}","[^"]*","root"[],]' ORDER BY t.place LIMIT 1),
        (SELECT substring(CAST(t.tag AS TEXT) FROM '^\["e","([0-9a-f]{64})"')
            FROM json_array_elements(CAST(json AS JSON) -> 'tags') WITH ORDINALITY AS t (tag, place)
            WHERE CAST(t.tag AS TEXT) ~ '^\["e","[0-9a-f]{64}"[],]' ORDER BY t.place LIMIT 1)), 'hex')
    WHERE kind IN (1630, 1631, 1632, 1633);
CREATE INDEX nostr_events_statuses ON nostr_events (status_of, pubkey, created_at DESC, event_id)
    WHERE status_of IS NOT NULL;
