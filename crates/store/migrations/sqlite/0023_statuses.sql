-- The event that a status is about. How far a thread is can then be told from columns, whatever the size of the events.
ALTER TABLE nostr_events ADD COLUMN status_of BLOB;
-- The `e` tag that is marked as the root, else the first one.
UPDATE nostr_events SET status_of = unhex(COALESCE(
        (SELECT t.value ->> 1 FROM json_each(nostr_events.json, '$.tags') t
            WHERE t.value ->> 0 = 'e' AND t.value ->> 3 = 'root' ORDER BY t.key LIMIT 1),
        (SELECT t.value ->> 1 FROM json_each(nostr_events.json, '$.tags') t
            WHERE t.value ->> 0 = 'e' ORDER BY t.key LIMIT 1)))
    WHERE kind IN (1630, 1631, 1632, 1633);
CREATE INDEX nostr_events_statuses ON nostr_events (status_of, pubkey, created_at DESC, event_id)
    WHERE status_of IS NOT NULL;
