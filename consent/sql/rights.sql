-- What a person may say besides yes and no: restrict, object; and what a withdrawal sets going.

-- NOT VALID first: the ledger may be long. A later migration validates it.
ALTER TABLE consentful_consent_entry
    DROP CONSTRAINT consentful_entry_decision,
    ADD CONSTRAINT consentful_entry_decision CHECK (
        decision IN ('given', 'refused', 'withdrawn', 'objected', 'objection_lifted')) NOT VALID;

ALTER TABLE consentful_restriction
    ADD CONSTRAINT consentful_restriction_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id) NOT VALID,
    ADD CONSTRAINT consentful_restriction_lifted
        CHECK ((lifted_by IS NULL) = (lifted_at IS NULL)) NOT VALID;
ALTER TABLE consentful_withdrawal
    ADD CONSTRAINT consentful_withdrawal_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id) NOT VALID,
    ADD CONSTRAINT consentful_withdrawal_purpose
        FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id) NOT VALID;
ALTER TABLE consentful_confirmation
    ADD CONSTRAINT consentful_confirmation_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id) NOT VALID,
    ADD CONSTRAINT consentful_confirmation_purpose
        FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id) NOT VALID;
ALTER TABLE consentful_restriction VALIDATE CONSTRAINT consentful_restriction_subject;
ALTER TABLE consentful_restriction VALIDATE CONSTRAINT consentful_restriction_lifted;
ALTER TABLE consentful_withdrawal VALIDATE CONSTRAINT consentful_withdrawal_subject;
ALTER TABLE consentful_withdrawal VALIDATE CONSTRAINT consentful_withdrawal_purpose;
ALTER TABLE consentful_confirmation VALIDATE CONSTRAINT consentful_confirmation_subject;
ALTER TABLE consentful_confirmation VALIDATE CONSTRAINT consentful_confirmation_purpose;

-- BEFORE INSERT OR UPDATE: the database's clock, and the exclusive fence, so that a restriction made
-- by plain SQL cannot slip past a writer either.
CREATE FUNCTION consentful_date_restriction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.lifted_by IS NULL) = (OLD.lifted_by IS NULL) THEN
        IF NEW.lifted_by <> OLD.lifted_by AND NOT NEW.lifted_by ^@ 'erased-' THEN
            RAISE EXCEPTION 'a restriction is lifted once' USING ERRCODE = 'insufficient_privilege';
        END IF;
        -- A name gives way to a pseudonym: nothing that a writer would have to wait for.
        NEW.at := OLD.at;
        NEW.lifted_at := OLD.lifted_at;
        RETURN NEW;
    END IF;
    PERFORM pg_advisory_xact_lock(consentful_fence_key(
        NEW.tenant_id, consentful_subject_name(NEW.tenant_id, NEW.subject_id)));
    IF TG_OP = 'INSERT' THEN
        NEW.at := consentful_now();
    END IF;
    NEW.lifted_at := CASE WHEN NEW.lifted_by IS NOT NULL THEN consentful_now() END;
    RETURN NEW;
END
$$;

-- AFTER any change: the one writer of what the gate reads.
CREATE FUNCTION consentful_keep_restricted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    tenant bigint := coalesce(NEW.tenant_id, OLD.tenant_id);
    who bigint := coalesce(NEW.subject_id, OLD.subject_id);
    what text;
BEGIN
    SELECT CASE WHEN bool_or(r.key IS NULL) THEN 'all' WHEN count(*) > 0 THEN 'keys' END INTO what
    FROM consentful_restriction r
    WHERE r.tenant_id = tenant AND r.subject_id = who AND r.lifted_by IS NULL;
    UPDATE consentful_subject SET restricted = what
    WHERE tenant_id = tenant AND id = who AND restricted IS DISTINCT FROM what;
    -- The read of a record comes by its consent state and not by the person.
    UPDATE consentful_consent_state SET restricted = what
    WHERE tenant_id = tenant AND subject_id = who AND restricted IS DISTINCT FROM what;
    RETURN NULL;
END
$$;

-- AFTER INSERT of a withdrawal into the ledger: what its purpose holds is to be purged, by whoever
-- holds it. This app deletes nothing of another.
CREATE FUNCTION consentful_note_withdrawal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO consentful_withdrawal (tenant_id, subject_id, purpose_id, at)
    SELECT NEW.tenant_id, NEW.subject_id, NEW.purpose_id, NEW.at FROM consentful_purpose p
    WHERE NEW.decision = 'withdrawn' AND p.tenant_id = NEW.tenant_id AND p.id = NEW.purpose_id
      AND p.on_withdrawal = 'erase';
    RETURN NULL;
END
$$;

SELECT consentful_attach('consentful_restriction', 'restriction', 'lifted');
SELECT consentful_attach('consentful_withdrawal', 'withdrawal', 'purged');
SELECT consentful_attach('consentful_confirmation', 'confirmation');

CREATE TRIGGER consentful_date_restriction BEFORE INSERT OR UPDATE ON consentful_restriction
    FOR EACH ROW EXECUTE FUNCTION consentful_date_restriction();
CREATE TRIGGER consentful_keep_restricted AFTER INSERT OR UPDATE OR DELETE ON consentful_restriction
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_restricted();
CREATE TRIGGER consentful_note_withdrawal AFTER INSERT ON consentful_consent_entry
    FOR EACH ROW EXECUTE FUNCTION consentful_note_withdrawal();

SELECT consentful_isolate('consentful_restriction');
SELECT consentful_isolate('consentful_withdrawal');
SELECT consentful_isolate('consentful_confirmation');
