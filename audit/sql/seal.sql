-- Sealing: the hash chain over a tenant's events, written afterwards and in batches, so that
-- no writer ever waits for it.

-- What a seal covers of an event, as a JSON array of texts. `audit.sealing.content` is the
-- same in Python, so that a check does not depend on the database's own functions.
CREATE FUNCTION consentful_event_content(event consentful_audit_event) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT json_build_array(
        event.id::text, event.tenant_id::text, (extract(epoch FROM event.at) * 1000000)::bigint::text,
        event.transaction::text, event.cluster::text, event.action, event.outcome,
        event.record, event.record_id::text, event.subject_id::text, event.actor_id,
        event.purpose, array_to_string(event.changed, ','), event.revision_before,
        event.revision_after, event.row_digest, event.target_digest, event.actor_digest)::text
$$;

-- Seal up to `most` events of one tenant; returns how many. An event is sealable when its
-- transaction ended before every running one, and no smaller id is still to be decided:
-- ids are handed out before commit, so the horizon of transactions alone could seal two
-- events of one record in the wrong order.
CREATE FUNCTION consentful_seal(tenant bigint, most integer DEFAULT 10000) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
<<batch>>
DECLARE
    horizon bigint;
    here bigint := consentful_cluster();
    undecided bigint;
    resume bigint;
    head consentful_audit_head;
    event consentful_audit_event;
    chained text;
    sealed integer := 0;
BEGIN
    INSERT INTO consentful_audit_head (tenant_id, sequence, hash, cluster, horizon, resume)
    VALUES (tenant, 0, repeat('0', 64), here, 0, 0) ON CONFLICT (tenant_id) DO NOTHING;
    -- One sealer of a tenant at a time. The statements after this one see what it committed.
    SELECT * INTO head FROM consentful_audit_head WHERE tenant_id = tenant FOR UPDATE;
    -- Transaction ids of a restored cluster say nothing about those before: look at all again.
    IF head.cluster <> here THEN
        head.horizon := 0;
        head.resume := 0;
    END IF;
    horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    SELECT min(e.id) INTO undecided FROM consentful_audit_event e
    WHERE e.tenant_id = tenant AND e.cluster = here AND e.transaction >= horizon;
    FOR event IN
        SELECT e.* FROM consentful_audit_event e
        WHERE e.tenant_id = tenant
          -- What an earlier batch had to leave: everything else is sealed already.
          AND (e.transaction >= head.horizon OR e.id >= head.resume)
          AND (e.cluster <> here OR e.transaction < horizon)
          AND (undecided IS NULL OR e.id < undecided)
          AND NOT EXISTS (SELECT FROM consentful_audit_seal s WHERE s.event_id = e.id)
        ORDER BY e.id LIMIT most
    LOOP
        chained := encode(sha256(convert_to(json_build_array(
            (head.sequence + 1)::text, head.hash, consentful_event_content(event))::text,
            'UTF8')), 'hex');
        INSERT INTO consentful_audit_seal (tenant_id, sequence, event_id, previous, hash, at)
        VALUES (tenant, head.sequence + 1, event.id, head.hash, chained, consentful_now());
        head.sequence := head.sequence + 1;
        head.hash := chained;
        sealed := sealed + 1;
        resume := event.id + 1;
    END LOOP;
    -- A full batch goes on behind its last event, so that a backlog is not read again for each.
    IF sealed < most THEN
        resume := coalesce(undecided, 9223372036854775807);
    END IF;
    UPDATE consentful_audit_head h
    SET sequence = head.sequence, hash = head.hash, cluster = here,
        started = pg_postmaster_start_time(), horizon = batch.horizon, resume = batch.resume
    WHERE h.tenant_id = tenant
      AND (sealed > 0 OR h.horizon <> batch.horizon OR h.resume <> batch.resume
           OR h.started IS DISTINCT FROM pg_postmaster_start_time());
    RETURN sealed;
END
$$;

-- BEFORE INSERT on links: no fork. Each link has a place of its own, by constraint, and what stands
-- in the place before is what it must follow. A place before that is empty was cut or is a finding.
-- A second unique index, on (tenant_id, previous), would say the same for 138 bytes a link.
CREATE FUNCTION consentful_follow() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF NEW.previous <> (SELECT before.hash FROM consentful_audit_seal AS before
                        WHERE before.tenant_id = NEW.tenant_id AND before.sequence = NEW.sequence - 1) THEN
        RAISE EXCEPTION 'link % does not follow the one before it', NEW.sequence
            USING ERRCODE = 'unique_violation', HINT = 'verify_audit says what happened to the chain.';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER consentful_follow BEFORE INSERT ON consentful_audit_seal
    FOR EACH ROW EXECUTE FUNCTION consentful_follow();
