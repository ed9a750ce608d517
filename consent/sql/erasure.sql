-- Erasure: of a forgotten person the ledger keeps decisions and times, and loses names and evidence.

-- BEFORE UPDATE OR DELETE on entries: evidence may be blanked, and an actor's name may give way to a
-- pseudonym. Nothing else, for nobody; the login that serves may not even do that by itself.
CREATE FUNCTION consentful_keep_entry() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    blank consentful_consent_entry;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        blank := OLD;
        IF NEW.evidence IS NULL THEN
            blank.evidence := NULL;
        END IF;
        IF NEW.actor ^@ 'erased-' THEN
            blank.actor := NEW.actor;
        END IF;
        -- *= compares the stored bytes.
        IF NEW *= blank THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'The ledger is append-only.';
END
$$;

DROP TRIGGER consentful_append_only ON consentful_consent_entry;
CREATE TRIGGER consentful_append_only BEFORE UPDATE OR DELETE ON consentful_consent_entry
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_entry();

-- Blank the evidence about one person, and put a pseudonym where the ledger names it as who decided,
-- about itself or, as an operator, about others. Returns how many entries.
CREATE FUNCTION consentful_blank_ledger(
    tenant bigint, subject bigint, names text[], pseudonym text
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    blanked bigint;
BEGIN
    IF tenant <> consentful_tenant() THEN
        RAISE EXCEPTION 'this transaction works for another tenant'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE consentful_consent_entry AS e
    SET evidence = CASE WHEN e.subject_id = subject THEN NULL ELSE e.evidence END,
        actor = CASE WHEN e.actor = ANY (names) THEN pseudonym ELSE e.actor END
    WHERE e.tenant_id = tenant
      AND (e.actor = ANY (names) OR (e.subject_id = subject AND e.evidence IS NOT NULL));
    GET DIAGNOSTICS blanked = ROW_COUNT;
    RETURN blanked;
END
$$;
