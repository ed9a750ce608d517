-- The ledger and its current state. The gate that asks it stands in gate.sql.

CREATE OR REPLACE FUNCTION consentful_purpose_slug(tenant bigint, purpose bigint) RETURNS text
LANGUAGE sql STABLE
AS $$ SELECT slug FROM consentful_purpose WHERE tenant_id = tenant AND id = purpose $$;

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
        tenant_id, subject_id, purpose_id, decision, version, expires_at, since, sequence, entry)
    VALUES (NEW.tenant_id, NEW.subject_id, NEW.purpose_id, NEW.decision, NEW.version,
            NEW.expires_at, NEW.at, NEW.sequence, NEW.entry)
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
