-- The event that a status is about. How far a thread is can then be told from columns, whatever the size of the events.
ALTER TABLE nostr_events ADD COLUMN status_of BYTEA;
-- The `e` tag that is marked as the root, else the first one. They are found in the text: JSON with an escaped NUL cannot be taken
-- apart here, and quotes are escaped in everything that is not a tag.
UPDATE nostr_events SET status_of = decode(COALESCE(
        substring(json FROM '\["e","([0-9a-f]{64})","[^"]*","root"[],]'),
        substring(json FROM '\["e","([0-9a-f]{64})"[],]')), 'hex')
    WHERE kind IN (1630, 1631, 1632, 1633);
CREATE INDEX nostr_events_statuses ON nostr_events (status_of, pubkey, created_at DESC, event_id)
    WHERE status_of IS NOT NULL;
