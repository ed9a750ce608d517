-- The ledger, its current state, and the gate.

CREATE OR REPLACE FUNCTION consentful_purpose_slug(tenant bigint, purpose bigint) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT p.slug FROM consentful_purpose p WHERE p.tenant_id = tenant AND p.id = purpose);
END
$$;

-- Foreign keys ignore row-level security: those between tenant tables name the tenant too.
ALTER TABLE consentful_purpose ADD CONSTRAINT consentful_purpose_in_tenant UNIQUE (tenant_id, id);
ALTER TABLE consentful_notice ADD CONSTRAINT consentful_notice_purpose
    FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id);
ALTER TABLE consentful_consent_entry
    ADD CONSTRAINT consentful_entry_purpose
        FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id),
    ADD CONSTRAINT consentful_entry_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id),
    ADD CONSTRAINT consentful_entry_finite CHECK (expires_at < '9999-12-31 00:00:00+00'),
    ADD CONSTRAINT consentful_entry_decision CHECK (decision IN ('given', 'refused', 'withdrawn')),
    ADD CONSTRAINT consentful_entry_version CHECK (decision <> 'given' OR version IS NOT NULL);
ALTER TABLE consentful_consent_state
    ADD CONSTRAINT consentful_state_purpose
        FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id),
    ADD CONSTRAINT consentful_state_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id);

-- BEFORE INSERT: the ledger's own order and clock. The exclusive fence is taken here too, so
-- that a decision made by plain SQL cannot slip past a writer that relied on the one before.
CREATE FUNCTION consentful_number_entry() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(consentful_fence_key(
        NEW.tenant_id, consentful_subject_name(NEW.tenant_id, NEW.subject_id)));
    SELECT coalesce(max(e.sequence), 0) + 1 INTO NEW.sequence FROM consentful_consent_entry e
    WHERE e.tenant_id = NEW.tenant_id AND e.subject_id = NEW.subject_id
      AND e.purpose_id = NEW.purpose_id;
    NEW.entry := replace(gen_random_uuid()::text, '-', '');
    NEW.at := consentful_now();
    RETURN NEW;
END
$$;

-- AFTER INSERT: the one writer of the current state.
CREATE FUNCTION consentful_keep_state() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO consentful_consent_state AS s (
        tenant_id, subject_id, purpose_id, decision, version, expires_at, since, sequence, entry,
        restricted)
    VALUES (NEW.tenant_id, NEW.subject_id, NEW.purpose_id, NEW.decision, NEW.version,
            NEW.expires_at, NEW.at, NEW.sequence, NEW.entry, (
                SELECT w.restricted FROM consentful_subject w
                WHERE w.tenant_id = NEW.tenant_id AND w.id = NEW.subject_id))
    ON CONFLICT (tenant_id, subject_id, purpose_id) DO UPDATE
    SET decision = NEW.decision, version = NEW.version, expires_at = NEW.expires_at,
        since = NEW.at, sequence = NEW.sequence, entry = NEW.entry
    WHERE s.sequence < NEW.sequence;
    RETURN NULL;
END
$$;

CREATE FUNCTION consentful_grant_tenant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    SELECT p.tenant_id INTO NEW.tenant_id FROM consentful_purpose p WHERE p.id = NEW.purpose_id;
    RETURN NEW;
END
$$;

-- What a state means at one moment. Expiry and a raised notice version are read, never stored. An
-- objection says nothing about consent: it was raised while the purpose had another basis.
CREATE FUNCTION consentful_consent_status(
    decision text, version integer, expires_at timestamptz, required_version integer,
    moment timestamptz
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN decision IS NULL OR decision IN ('objected', 'objection_lifted') THEN 'none'
        WHEN decision <> 'given' THEN decision
        WHEN expires_at <= moment THEN 'expired'
        WHEN version < required_version THEN 'outdated'
        ELSE 'given'
    END
$$;

-- The verdict of the gate on what was found: NULL, or the code of the refusal. The one place that
-- says what decides; those who look it up differ in how they come by the person. Inlined.
--
-- A restriction comes last: that one key is restricted says that there was something, which nobody
-- may learn whom the person did not let in. It is looked at last, too.
CREATE FUNCTION consentful_verdict(
    is_served boolean, lawful_basis text, required_version integer,
    decision text, version integer, expires_at timestamptz, moment timestamptz,
    is_restricted boolean
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN NOT is_served THEN 'purpose_not_allowed'
        WHEN lawful_basis = 'consent' AND consentful_consent_status(
            decision, version, expires_at, required_version, moment) <> 'given'
            THEN 'consent_required'
        WHEN lawful_basis <> 'consent' AND decision = 'objected' THEN 'objected'
        WHEN is_restricted THEN 'restricted'
    END
$$;

-- Whether a person restricted everything, or the record of one key. Asked only where the consent
-- state does not say that nothing is restricted.
CREATE FUNCTION consentful_is_restricted(tenant bigint, who bigint, record_key text) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    what text := (SELECT s.restricted FROM consentful_subject s
                  WHERE s.tenant_id = tenant AND s.id = who);
BEGIN
    IF what = 'keys' THEN
        RETURN EXISTS (
            SELECT FROM consentful_restriction r
            WHERE r.tenant_id = tenant AND r.subject_id = who AND r.key = record_key
              AND r.lifted_by IS NULL);
    END IF;
    RETURN what IS NOT NULL;
END
$$;

-- The gate: may this purpose be served for this person now, by this agent? Returns NULL or the
-- code of the refusal. Under READ COMMITTED, with the fence held, the answer stays true until
-- the transaction ends. A NULL agent is a person's own or an operator's credential; without a key,
-- restrictions of single records are not asked for.
CREATE FUNCTION consentful_gate(
    tenant bigint, subject text, purpose bigint, agent text, moment timestamptz,
    record_key text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT consentful_verdict(
            CASE WHEN agent IS NULL THEN true ELSE consentful_serves(tenant, agent, purpose) END,
            p.lawful_basis, p.required_version, s.decision, s.version, s.expires_at, moment,
            CASE WHEN who.restricted IS NULL THEN false
                 ELSE consentful_is_restricted(tenant, who.id, record_key) END)
        FROM consentful_purpose p
        LEFT JOIN consentful_subject who
            ON who.tenant_id = tenant AND who.external_id = subject
        LEFT JOIN consentful_consent_state s
            ON s.tenant_id = tenant AND s.subject_id = who.id AND s.purpose_id = p.id
        WHERE p.tenant_id = tenant AND p.id = purpose);
END
$$;

SELECT consentful_attach('consentful_purpose', 'purpose');
SELECT consentful_attach('consentful_notice', 'notice');
SELECT consentful_attach('consentful_purpose_user_permission', 'purpose_grant');
SELECT consentful_attach('consentful_purpose_group_permission', 'purpose_group_grant');
SELECT consentful_attach('consentful_consent_entry', 'consent', 'changed', 'decision');

CREATE TRIGGER consentful_number_entry BEFORE INSERT ON consentful_consent_entry
    FOR EACH ROW EXECUTE FUNCTION consentful_number_entry();
CREATE TRIGGER consentful_keep_state AFTER INSERT ON consentful_consent_entry
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_state();
CREATE TRIGGER consentful_append_only BEFORE UPDATE OR DELETE ON consentful_consent_entry
    FOR EACH ROW EXECUTE FUNCTION consentful_refuse('The ledger is append-only.');
CREATE TRIGGER consentful_immutable BEFORE UPDATE OR DELETE ON consentful_notice
    FOR EACH ROW EXECUTE FUNCTION consentful_refuse('A published notice never changes: add a version.');
CREATE TRIGGER consentful_no_truncate BEFORE TRUNCATE ON consentful_consent_state
    FOR EACH STATEMENT EXECUTE FUNCTION consentful_refuse('The state follows the ledger.');
CREATE TRIGGER consentful_grant_tenant BEFORE INSERT OR UPDATE ON consentful_purpose_user_permission
    FOR EACH ROW EXECUTE FUNCTION consentful_grant_tenant();
CREATE TRIGGER consentful_grant_tenant BEFORE INSERT OR UPDATE ON consentful_purpose_group_permission
    FOR EACH ROW EXECUTE FUNCTION consentful_grant_tenant();

SELECT consentful_isolate('consentful_purpose');
SELECT consentful_isolate('consentful_notice');
SELECT consentful_isolate('consentful_consent_entry');
SELECT consentful_isolate('consentful_consent_state');
