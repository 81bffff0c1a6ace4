-- The content type of the first attempt of a delivery: retries and redeliveries use it too. NULL before the first attempt,
-- and in rows of older versions, which use the current content type of their hook.
ALTER TABLE webhook_deliveries ADD COLUMN content_type TEXT;
