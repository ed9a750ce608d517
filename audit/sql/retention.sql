-- Retention: the oldest part of a tenant's chain may go, once a signed checkpoint stands for it.
-- The owner alone may call what follows: the login that serves can delete no event, however old.

-- BEFORE UPDATE OR DELETE on events and on links: what a cut covers may be deleted, nothing else.
CREATE FUNCTION consentful_keep_event() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT FROM consentful_audit_seal AS link JOIN consentful_audit_cut AS cut
            ON cut.tenant_id = link.tenant_id AND link.sequence <= cut.sequence
        WHERE link.event_id = OLD.id AND link.tenant_id = OLD.tenant_id
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'The trail is insert-only.';
END
$$;

CREATE FUNCTION consentful_keep_seal() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT FROM consentful_audit_cut
        WHERE tenant_id = OLD.tenant_id AND OLD.sequence <= sequence
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'The chain is insert-only.';
END
$$;

-- Repeat what live rows are, so that the proof of them survives the events before; returns the ids
-- of those whose event was written. The rows are locked meanwhile, so that no change can come
-- between what is read and its event. Whoever holds several locks must wait for none, or two that
-- lock in different orders wait in a circle: so rows that somebody has locked are passed over,
-- unless one alone is asked for.
CREATE FUNCTION consentful_snapshot(target regclass, noun text, row_ids bigint[], context text)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = public, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    live record;
    written bigint[] := '{}';
BEGIN
    PERFORM set_config('consentful.context', context, true);
    FOR live IN EXECUTE format(
        'SELECT t.id, to_json(t) AS row_json, t.revision FROM %s AS t WHERE t.id = ANY ($1) FOR SHARE %s',
        target, CASE WHEN cardinality(row_ids) > 1 THEN 'SKIP LOCKED' END) USING row_ids
    LOOP
        PERFORM consentful_append_row(noun, 'snapshot', live.row_json, live.revision);
        written := written || live.id;
    END LOOP;
    RETURN written;
END
$$;

-- The records that the trail leaves alive and whose last event stands in the first `upto` links.
CREATE FUNCTION consentful_uncovered(tenant bigint, upto bigint)
RETURNS TABLE (record text, record_id bigint)
LANGUAGE sql STABLE
AS $$
    SELECT event.record, event.record_id
    FROM consentful_audit_seal AS link JOIN consentful_audit_event AS event
        ON event.id = link.event_id AND event.tenant_id = link.tenant_id
    WHERE link.tenant_id = tenant AND link.sequence <= upto AND event.revision_after IS NOT NULL
      AND NOT EXISTS (
        SELECT FROM consentful_audit_event AS later
        WHERE later.tenant_id = tenant AND later.record = event.record
          AND later.record_id = event.record_id AND later.id > event.id)
$$;

-- Decide that the first `upto` links go. Nothing is deleted yet.
CREATE FUNCTION consentful_cut(
    tenant bigint, upto bigint, hash text, checkpoint text, context text
) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM consentful_audit_seal AS link
    WHERE link.tenant_id = tenant AND link.sequence = upto AND link.hash = consentful_cut.hash;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'link % of the chain is not the one that the checkpoint names', upto
            USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (SELECT FROM consentful_uncovered(tenant, upto)) THEN
        RAISE EXCEPTION 'a live record has its last event in the first % links', upto
            USING ERRCODE = 'check_violation', HINT = 'Write its snapshot first.';
    END IF;
    INSERT INTO consentful_audit_cut (tenant_id, sequence, hash, checkpoint, at)
    VALUES (tenant, upto, hash, checkpoint, consentful_now());
    PERFORM consentful_append_event(
        tenant, 'trail.cut', 'done', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, NULL,
        NULL, context::json);
END
$$;

-- Delete up to `most` events that a cut covers, with their links; returns how many.
CREATE FUNCTION consentful_drop_cut(tenant bigint, most integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    bound bigint;
    dropped integer;
BEGIN
    SELECT max(sequence) INTO bound FROM (
        SELECT link.sequence FROM consentful_audit_seal AS link
        WHERE link.tenant_id = tenant
          AND link.sequence <= (SELECT max(sequence) FROM consentful_audit_cut WHERE tenant_id = tenant)
        ORDER BY link.sequence LIMIT most) AS oldest;
    -- The events first: each is known to be covered by its link.
    DELETE FROM consentful_audit_event AS event USING consentful_audit_seal AS link
    WHERE link.event_id = event.id AND link.tenant_id = tenant AND event.tenant_id = tenant
      AND link.sequence <= bound;
    DELETE FROM consentful_audit_seal AS link
    WHERE link.tenant_id = tenant AND link.sequence <= bound;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    RETURN dropped;
END
$$;

DROP TRIGGER consentful_insert_only ON consentful_audit_event;
CREATE TRIGGER consentful_insert_only BEFORE UPDATE OR DELETE ON consentful_audit_event
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_event();
DROP TRIGGER consentful_insert_only ON consentful_audit_seal;
CREATE TRIGGER consentful_insert_only BEFORE UPDATE OR DELETE ON consentful_audit_seal
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_seal();

CREATE TRIGGER consentful_insert_only BEFORE UPDATE OR DELETE ON consentful_audit_cut
    FOR EACH ROW EXECUTE FUNCTION consentful_refuse('Cuts are insert-only.');
CREATE TRIGGER consentful_insert_only_all BEFORE TRUNCATE ON consentful_audit_cut
    FOR EACH STATEMENT EXECUTE FUNCTION consentful_refuse('Cuts are insert-only.');

REVOKE EXECUTE ON FUNCTION consentful_snapshot(regclass, text, bigint[], text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_uncovered(bigint, bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_cut(bigint, bigint, text, text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_drop_cut(bigint, integer) FROM PUBLIC;
