-- How far each consumer has read the log of events. The cursor moves in the transaction that writes what the events
-- brought about. While the event behind it fails, `tries` counts and `retry_at` says when it is tried again.
CREATE TABLE event_consumers (
    name       TEXT NOT NULL PRIMARY KEY,
    cursor     BIGINT NOT NULL,
    tries      BIGINT NOT NULL DEFAULT 0,
    last_error TEXT,
    retry_at   BIGINT,
    moved_at   BIGINT NOT NULL
);

-- Events that a consumer could not take in, set aside so that the log goes on. The event is kept until this is settled.
CREATE TABLE event_failures (
    consumer  TEXT NOT NULL,
    seq       BIGINT NOT NULL,
    kind      TEXT NOT NULL,
    error     TEXT NOT NULL,
    tries     BIGINT NOT NULL,
    failed_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, seq)
);
CREATE INDEX event_failures_by_seq ON event_failures (seq, consumer);
