-- What other servers are told. A hook has no reference to its repository: it outlives it until it has told of its end.
CREATE TABLE webhooks (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo_id      BIGINT NOT NULL,
    url          TEXT NOT NULL,
    content_type TEXT NOT NULL CHECK (content_type IN ('json', 'form')),
    -- Sealed; NULL: nothing is signed.
    secret       BYTEA,
    -- A JSON list of words.
    events       TEXT NOT NULL,
    active       BOOLEAN NOT NULL,
    created_by   BIGINT REFERENCES users (id) ON DELETE SET NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    -- Since when its repository is gone for good.
    gone_at      BIGINT,
    -- Deliveries that failed since one arrived, and since when only probes are sent.
    failures     BIGINT NOT NULL DEFAULT 0,
    open_since   BIGINT,
    -- When a suspended hook is probed next.
    probe_at     BIGINT,
    -- When the oldest delivery that waits is tried; NULL: none waits.
    next_at      BIGINT,
    -- Who is trying it, under which fencing token, and until when.
    holder       TEXT,
    token        BIGINT NOT NULL DEFAULT 0,
    expires_at   BIGINT
);
CREATE INDEX webhooks_by_repo ON webhooks (repo_id, id);
CREATE INDEX webhooks_by_creator ON webhooks (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX webhooks_due ON webhooks (next_at, id) WHERE next_at IS NOT NULL;
CREATE INDEX webhooks_held ON webhooks (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX webhooks_gone ON webhooks (gone_at) WHERE gone_at IS NOT NULL;

CREATE TABLE webhook_deliveries (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hook_id          BIGINT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    -- What the receiver knows it by, however often it is sent.
    guid             TEXT NOT NULL,
    -- The domain event and which of its tellings; NULL for what someone asked for by hand.
    event_id         BIGINT,
    part             BIGINT NOT NULL DEFAULT 0,
    kind             TEXT NOT NULL,
    action           TEXT,
    redelivery_of    BIGINT REFERENCES webhook_deliveries (id) ON DELETE SET NULL,
    payload          TEXT NOT NULL,
    -- The commits of a push are read from the repository before the first try.
    draft            BOOLEAN NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'ok', 'failed')),
    attempts         BIGINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    attempted_at     BIGINT,
    finished_at      BIGINT,
    -- Of the latest try.
    duration         BIGINT,
    request_headers  TEXT,
    status           BIGINT,
    error            TEXT,
    response_headers TEXT,
    response_body    TEXT,
    UNIQUE (hook_id, event_id, part)
);
CREATE INDEX webhook_deliveries_by_hook ON webhook_deliveries (hook_id, id);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (hook_id, id) WHERE state IN ('queued', 'sending');
CREATE INDEX webhook_deliveries_tried ON webhook_deliveries (hook_id, id) WHERE duration IS NOT NULL;
CREATE INDEX webhook_deliveries_by_original ON webhook_deliveries (redelivery_of) WHERE redelivery_of IS NOT NULL;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);
