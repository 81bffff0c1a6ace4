-- Rows for every table, many enough that an index is worth its while.

-- They belong together. Looking each of a million references up takes half of the time, so that is left out where the
-- user may.
DO $$ BEGIN
    PERFORM set_config('session_replication_role', 'replica', FALSE);
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$;
INSERT INTO users (name, created_at, updated_at) SELECT 'u' || n, 0, 0 FROM generate_series(1, 5000) n;
INSERT INTO emails (user_id, address, folded, is_primary, created_at) SELECT id, name, name, TRUE, 0 FROM users;
INSERT INTO emails (user_id, address, folded, is_primary, created_at)
    SELECT id, name || n, name || '-' || n, FALSE, 0 FROM users, generate_series(1, 3) n;
INSERT INTO tokens (user_id, label, hash, hint, scopes, created_at)
    SELECT id, 'x', sha256(convert_to(name, 'UTF8')), 'x', 'repo', 0 FROM users;
INSERT INTO ssh_keys (user_id, title, fingerprint, public_key, created_at)
    SELECT id, 'x', 'SHA256:' || id, 'x', 0 FROM users;
INSERT INTO user_redirects (old_name, user_id, created_at) SELECT 'old' || id, id, 0 FROM users;
INSERT INTO sessions (hash, user_id, agent, created_at, last_seen_at, expires_at)
    SELECT sha256(convert_to(name, 'UTF8')), id, 'x', 0, id, id FROM users;
INSERT INTO one_time_links (hash, purpose, user_id, email_id, created_by, created_at, expires_at)
    SELECT sha256(convert_to(name, 'UTF8')), CASE id % 100 WHEN 0 THEN 'invite' ELSE 'verify' END, id, id, id, 0, id
    FROM users;
INSERT INTO totp (user_id, secret) SELECT id, '' FROM users;
INSERT INTO recovery_codes (user_id, hash) SELECT id, sha256(convert_to(name, 'UTF8')) FROM users;
INSERT INTO throttles (scope, identifier, window_start, count) SELECT 'x', name, id, 1 FROM users;
UPDATE users SET site_admin = TRUE WHERE id % 1000 = 0;
INSERT INTO repo_ids (reserved_at) SELECT 0 FROM generate_series(1, 20000);
INSERT INTO repos (id, owner_id, name, visibility, governance, default_branch, created_at, updated_at)
    SELECT id, id % 5000 + 1, 'r' || id, 'public', 'account', 'refs/heads/main', 0, 0 FROM repo_ids;
INSERT INTO repo_collaborators (repo_id, user_id, role, created_at)
    SELECT id, (id + 7) % 5000 + 1, 'read', 0 FROM repos WHERE id % 2 = 0;
UPDATE repos SET fork_of_repo_id = id - 1 WHERE id % 3 = 2;
INSERT INTO repo_topics (repo_id, topic, position) SELECT id, 't' || id % 1000, 0 FROM repos;
INSERT INTO repo_topics (repo_id, topic, position) SELECT id, 's' || id % 700, 1 FROM repos;
INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, left_at)
    SELECT owner_id, 'was' || id, id, 0 FROM repos WHERE id % 3 = 0;
INSERT INTO repo_transfers (repo_id, slug, from_owner_id, recipient_id, created_by, status, created_at, expires_at)
    SELECT id, 'x', owner_id, owner_id % 5000 + 1, owner_id, CASE id % 50 WHEN 0 THEN 'pending' ELSE 'declined' END, 0, id
    FROM repos;
INSERT INTO issue_counters (repo_id, last_issue) SELECT id, 5 FROM repos;
INSERT INTO milestones (repo_id, number, title, folded, state, creator_id, created_at, updated_at)
    SELECT id, 1, 'x', 'x', 'open', owner_id, 0, 0 FROM repos;
INSERT INTO issues (repo_id, number, author_id, title, body, state, milestone_id, closed_by, created_at, updated_at)
    SELECT r.id % 100 + 1, r.id, r.owner_id, 'x', 'y', 'open', m.id, r.owner_id, 0, r.id
    FROM repos r JOIN milestones m ON m.repo_id = r.id;
INSERT INTO comments (repo_id, issue_id, author_id, body, created_at, updated_at)
    SELECT i.repo_id, i.id, i.author_id, 'x', 0, 0 FROM issues i;
INSERT INTO labels (repo_id, name, folded, color, created_at) SELECT id, 'x', 'x', 'ededed', 0 FROM repos;
INSERT INTO issue_labels (issue_id, label_id) SELECT i.id, l.id FROM issues i JOIN labels l ON l.repo_id = i.id;
INSERT INTO issue_assignees (issue_id, user_id, created_at) SELECT id, author_id, 0 FROM issues;
INSERT INTO issue_subscriptions (issue_id, user_id, subscribed, reason, updated_at)
    SELECT id, author_id, TRUE, 'author', 0 FROM issues;
INSERT INTO issue_mentions (issue_id, user_id, created_at) SELECT id, author_id, 0 FROM issues;
INSERT INTO issue_events (issue_id, actor_id, kind, detail, comment_id, source_repo_id, source_issue_id, once, created_at)
    SELECT i.id, i.author_id, 'x', '{}', c.id, i.repo_id, i.id, 'x', 0
    FROM issues i JOIN comments c ON c.issue_id = i.id;
INSERT INTO repo_purges (repo_id, slug, created_at) SELECT id + 100000, 'x', 0 FROM repos;
ALTER TABLE stars DISABLE TRIGGER USER;
ALTER TABLE watches DISABLE TRIGGER USER;
INSERT INTO stars (user_id, repo_id, starred_at) SELECT (id + n * 11) % 5000 + 1, id, n FROM repos, generate_series(1, 3) n;
INSERT INTO watches (user_id, repo_id, level, updated_at)
    SELECT (id + n * 13) % 5000 + 1, id, CASE n WHEN 1 THEN 'ignore' ELSE 'all' END, n FROM repos, generate_series(1, 3) n;
INSERT INTO notification_threads (repo_id, subject_kind, subject_id, created_at, updated_at)
    SELECT id, 'repo', id, 0, 0 FROM repos;
INSERT INTO notifications (user_id, thread_id, title, reason, state, private, last_seq, updated_at, mail_due_at)
    SELECT (t.id + n * 7) % 5000 + 1, t.id, 'x', 'subscribed', CASE n WHEN 1 THEN 'unread' ELSE 'read' END, FALSE, t.id,
        t.id, CASE t.id % 1000 WHEN 0 THEN t.id END FROM notification_threads t, generate_series(1, 3) n;
INSERT INTO mail_opt_outs (user_id, reason, created_at) SELECT id, 'mention', 0 FROM users;
INSERT INTO follows (follower_id, followed_id, followed_at)
    SELECT id, (id + n * 17) % 5000 + 1, n FROM users, generate_series(1, 5) n;
INSERT INTO webhooks (repo_id, url, content_type, events, active, created_by, created_at, updated_at, gone_at, next_at,
        expires_at)
    SELECT id, 'x', 'json', '[]', TRUE, owner_id, 0, 0, CASE id % 100 WHEN 0 THEN id END,
        CASE id % 200 WHEN 1 THEN id END, CASE id % 400 WHEN 1 THEN id END FROM repos;
INSERT INTO webhook_deliveries (hook_id, guid, event_id, kind, payload, draft, state, redelivery_of, duration, created_at)
    SELECT id, 'x', n, 'push', '{}', FALSE, CASE n % 5 WHEN 0 THEN 'queued' ELSE 'ok' END, NULL, NULLIF(n, 5), id
    FROM webhooks, generate_series(1, 5) n;
INSERT INTO nostr_events (event_id, pubkey, kind, created_at, slot, expires_at, json, stored_at)
    SELECT sha256(convert_to('e' || n, 'UTF8')), sha256(convert_to('k' || n % 5000, 'UTF8')),
        CASE n % 10 WHEN 0 THEN 30617 ELSE 1111 + n % 3 END, n, CASE n % 10 WHEN 0 THEN 'x' || n END,
        CASE n % 500 WHEN 1 THEN n END, '{}', 0 FROM generate_series(1, 50000) n;
UPDATE nostr_events SET status_of = sha256(convert_to('e' || n % 100, 'UTF8')) WHERE kind = 1112;
INSERT INTO nostr_tags (key, created_at, n) SELECT n % 9000 + m * 100000, created_at, n
    FROM nostr_events, generate_series(1, 3) m;
UPDATE users SET npub = 'npub1' || id WHERE id % 2 = 0;
INSERT INTO nostr_repos (repo_id, pubkey, identifier)
    SELECT id, sha256(convert_to('k' || id, 'UTF8')), 'i' || id FROM repos WHERE id % 2 = 1 ON CONFLICT DO NOTHING;
INSERT INTO nostr_proposal_refs (repo_id, event_id, pubkey)
    SELECT r.repo_id, e.event_id, e.pubkey FROM nostr_events e JOIN nostr_repos r ON r.repo_id = e.n % 19999 + 1;
INSERT INTO purgatory_announcements (pubkey, identifier, event_id, event_at, json, address, created_at, expires_at)
    SELECT sha256(convert_to('k' || n, 'UTF8')), 'i' || n % 9000, sha256(convert_to('a' || n, 'UTF8')), n, '{}', 'x' || n, n,
        n FROM generate_series(1, 20000) n;
INSERT INTO purgatory_states (event_id, pubkey, identifier, event_at, json, address, created_at, expires_at)
    SELECT event_id, pubkey, identifier, event_at, json, address, created_at, expires_at FROM purgatory_announcements;
INSERT INTO purgatory_proposals (event_id, pubkey, commit_id, incoming, bytes, address, created_at, expires_at)
    SELECT event_id, pubkey, 'x', 'x' || event_at, event_at, address, created_at, expires_at FROM purgatory_announcements;
INSERT INTO purgatory_proposal_repos (event_id, n, pubkey, identifier, created_at)
    SELECT event_id, 0, pubkey, identifier, created_at FROM purgatory_announcements;
INSERT INTO purgatory_expired (event_id, until) SELECT event_id, event_at FROM purgatory_announcements;
UPDATE purgatory_announcements SET repo_id = event_at WHERE event_at % 2 = 0;
INSERT INTO nostr_keys (pubkey, events, bytes)
    SELECT sha256(convert_to('k' || n, 'UTF8')), 1, n FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING;
INSERT INTO nostr_addresses (address, day, bytes) SELECT 'x' || n, n % 10, n FROM generate_series(1, 20000) n;
INSERT INTO nostr_indirect (n, pubkey, steps) SELECT n, pubkey, 2 FROM nostr_events WHERE n % 2 = 0;
INSERT INTO nostr_news (n, root, user_id, title, excerpt)
    SELECT n, n, (SELECT max(id) FROM users) - n % 1000, 'x', 'x' FROM nostr_events WHERE n % 4 = 0;
INSERT INTO purgatory_attached (event_id, pubkey, json, bytes, address, created_at)
    SELECT event_id, pubkey, '{}', 2, address, created_at FROM purgatory_announcements;
INSERT INTO purgatory_attached_repos (event_id, pubkey, identifier)
    SELECT event_id, pubkey, identifier FROM purgatory_announcements;
INSERT INTO purgatory_attached_proposals (event_id, proposal_id)
    SELECT event_id, decode(lpad(to_hex(row_number() OVER ()), 64, '0'), 'hex') FROM purgatory_attached;
INSERT INTO quota_reservations (id, pubkey, address, bytes, holder, expires_at)
    SELECT 'push-' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'), 'address-' || n, 1, 'node', n FROM generate_series(1, 5000) n;
INSERT INTO sync_queue (identifier, next_attempt, created_at, expires_at)
    SELECT 'repo-' || n, n, n, CASE n % 1000 WHEN 0 THEN n END FROM generate_series(1, 5000) n;
INSERT INTO sync_sources (queue_id, url, domain, tried_at, outcome, detail)
    SELECT id, 'https://host-' || m || '/' || id, 'host-' || id || m, id, 'x', 'x' FROM sync_queue, generate_series(1, 4) m;
INSERT INTO sync_domains (domain, asked_at) SELECT 'host-' || n, n FROM generate_series(1, 5000) n;
INSERT INTO sync_requests (domain, made_at, ends_at)
    SELECT 'host-' || n % 2000, n, CASE n % 1000 WHEN 0 THEN n END FROM generate_series(1, 10000) n;
INSERT INTO sync_relays (url, bootstrap, next_attempt, created_at, expires_at)
    SELECT 'wss://relay-' || n, n % 2000 = 0, n, n, CASE n % 1000 WHEN 0 THEN n END FROM generate_series(1, 5000) n;
INSERT INTO sync_relay_repos (identifier, pubkey, url, from_at)
    SELECT identifier, pubkey, 'wss://relay-' || repo_id % 5000, 0 FROM nostr_repos;
INSERT INTO sync_refused (url, event_id, created_at, class, at)
    SELECT 'wss://relay-' || n % 50, sha256(convert_to('r' || n, 'UTF8')), n, CASE n % 10 WHEN 0 THEN 'restricted' ELSE 'invalid' END, n
    FROM generate_series(1, 20000) n;
INSERT INTO sync_replicas (identifier, pubkey, url, state_id, state_at, seen_at)
    SELECT identifier, pubkey, 'wss://relay', pubkey, 0, repo_id FROM nostr_repos;
INSERT INTO sync_turns (domain, queue_id, since) SELECT 'host-' || id % 700, id, id FROM sync_queue;
INSERT INTO barred_keys (npub, created_at) SELECT 'npub1' || n, n FROM generate_series(1, 5000) n;
INSERT INTO nostr_proofs (id, until) SELECT sha256(convert_to('p' || n, 'UTF8')), n FROM generate_series(1, 20000) n;
INSERT INTO nostr_deleted (pubkey, target, at, event_id)
    SELECT sha256(convert_to('k' || n, 'UTF8')), 'e:' || n, 0, 'x' FROM generate_series(1, 20000) n;
UPDATE repos SET deleted_at = id WHERE id % 20 = 1;
INSERT INTO leases (name, holder, token, expires_at) SELECT 'repo:' || id, 'x', 1, 0 FROM repos;
INSERT INTO pushes
    (repo_id, state, transport, incoming, updates, lease_token, generation, started_at, finished_at)
    SELECT id, CASE id % 2000 WHEN 0 THEN 'running' ELSE 'done' END, 'ssh', 'x', '', 1, 1, 0, id FROM repos;
INSERT INTO jobs (kind, payload, priority, state, run_at, max_attempts, created_at, expires_at, finished_at)
    SELECT 'x', '{}', n % 3, CASE n % 1000 WHEN 0 THEN 'waiting' WHEN 1 THEN 'running' ELSE 'done' END, n, 1, 0, n, n
    FROM generate_series(1, 20000) n;
INSERT INTO domain_events
    (seq, actor_user_id, kind, repo_id, source_kind, source_id, public, payload, created_at, told)
    SELECT NULLIF(id, 20000), owner_id, 'x', id, 'repo', id, id % 2 = 0, '{}', id, TRUE FROM repos;
INSERT INTO trending (period, repo_id, score, counted_at) SELECT 'day', id, id, 0 FROM repos WHERE id <= 100;
INSERT INTO event_failures (consumer, seq, kind, error, tries, failed_at) SELECT 'x' || id % 10, id, 'x', 'x', 1, 0 FROM repos;
INSERT INTO audit_log (seq, action, repo_id, meta, created_at)
    SELECT NULLIF(id, 20000), 'x', id, '{}', 0 FROM repos;
ANALYZE;
