-- The log of events keeps no text that people wrote: readers take titles and texts from the live rows.
-- A payload that PostgreSQL cannot read as JSON (it takes no \u0000) is emptied.
CREATE FUNCTION pg_temp.without(payload TEXT, VARIADIC fields TEXT[]) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
    RETURN (payload::jsonb - fields)::text;
EXCEPTION WHEN others THEN
    RETURN '{}';
END $$;
UPDATE domain_events SET payload = pg_temp.without(payload, 'title', 'excerpt', 'label', 'milestone')
    WHERE source_kind = 'issue';
UPDATE domain_events SET payload = pg_temp.without(payload, 'before') WHERE kind = 'issue_edited';
UPDATE domain_events SET payload = pg_temp.without(payload, 'title', 'label', 'before', 'color')
    WHERE kind IN ('label_created', 'label_edited', 'label_deleted', 'milestone_created', 'milestone_edited',
        'milestone_opened', 'milestone_closed', 'milestone_deleted');
UPDATE domain_events SET payload = (payload::jsonb #- '{snapshot,description}')::text
    WHERE kind = 'repo_hard_deleted' AND position('\u0000' IN payload) = 0;
-- The commits of repositories that are gone for good.
UPDATE domain_events SET payload = pg_temp.without(payload, 'refs') WHERE kind = 'push' AND repo_id IS NULL;
UPDATE notifications SET title = ''
    WHERE thread_id IN (SELECT id FROM notification_threads WHERE subject_kind = 'issue');
-- Mails that went out.
UPDATE jobs SET payload = '{}' WHERE kind = 'mail:send' AND state = 'done';
