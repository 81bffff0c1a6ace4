-- The log of events keeps no text that people wrote: readers take titles and texts from the live rows.
UPDATE domain_events SET payload = json_remove(payload, '$.title', '$.excerpt', '$.label', '$.milestone')
    WHERE source_kind = 'issue' AND json_valid(payload);
UPDATE domain_events SET payload = json_remove(payload, '$.before')
    WHERE kind = 'issue_edited' AND json_valid(payload);
UPDATE domain_events SET payload = json_remove(payload, '$.title', '$.label', '$.before', '$.color')
    WHERE kind IN ('label_created', 'label_edited', 'label_deleted', 'milestone_created', 'milestone_edited',
        'milestone_opened', 'milestone_closed', 'milestone_deleted') AND json_valid(payload);
UPDATE domain_events SET payload = json_remove(payload, '$.snapshot.description')
    WHERE kind = 'repo_hard_deleted' AND json_valid(payload);
-- The commits of repositories that are gone for good.
UPDATE domain_events SET payload = json_remove(payload, '$.refs')
    WHERE kind = 'push' AND repo_id IS NULL AND json_valid(payload);
UPDATE notifications SET title = ''
    WHERE thread_id IN (SELECT id FROM notification_threads WHERE subject_kind = 'issue');
-- Mails that went out.
UPDATE jobs SET payload = '{}' WHERE kind = 'mail:send' AND state = 'done';
