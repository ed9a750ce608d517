-- The gate: the one place that says whether data may be used. Installed by a later migration than
-- the tables, since it asks columns that came with it.

-- What a state means at one moment. Expiry and a raised notice version are read, never stored. An
-- objection says nothing about consent: it was raised while the purpose had another basis.
CREATE OR REPLACE FUNCTION consentful_consent_status(
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

-- May this purpose be served for this person now, by this agent? Returns NULL or the code of the
-- refusal. Under READ COMMITTED, with the fence held, the answer stays true until the transaction
-- ends. A NULL agent is a person's own or an operator's credential; without a key, restrictions of
-- single records are not asked for.
--
-- A restriction comes last: that one key is restricted says that there was something, which nobody
-- may learn whom the person did not let in.
DROP FUNCTION IF EXISTS consentful_gate(bigint, text, bigint, text, timestamptz);
CREATE OR REPLACE FUNCTION consentful_gate(
    tenant bigint, subject text, purpose bigint, agent text, moment timestamptz,
    record_key text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    basis text;
    state text;
    status text;
    who bigint;
    restricted text;
BEGIN
    IF agent IS NOT NULL AND NOT consentful_serves(tenant, agent, purpose) THEN
        RETURN 'purpose_not_allowed';
    END IF;
    -- One statement: what restricts a person stands on the row that leads to the state.
    SELECT p.lawful_basis, s.decision, consentful_consent_status(
               s.decision, s.version, s.expires_at, p.required_version, moment),
           person.id, person.restricted
    INTO basis, state, status, who, restricted
    FROM consentful_purpose p
    LEFT JOIN consentful_subject person
      ON person.tenant_id = p.tenant_id AND person.external_id = subject
    LEFT JOIN consentful_consent_state s
      ON s.tenant_id = person.tenant_id AND s.subject_id = person.id AND s.purpose_id = p.id
    WHERE p.tenant_id = tenant AND p.id = purpose;
    IF basis = 'consent' THEN
        IF status IS DISTINCT FROM 'given' THEN
            RETURN 'consent_required';
        END IF;
    ELSIF state = 'objected' THEN
        RETURN 'objected';
    END IF;
    IF restricted = 'all' OR restricted = 'keys' AND record_key IS NOT NULL AND EXISTS (
        SELECT FROM consentful_restriction r
        WHERE r.tenant_id = tenant AND r.subject_id = who AND r.key = record_key
          AND r.lifted_by IS NULL) THEN
        RETURN 'restricted';
    END IF;
    RETURN NULL;
END
$$;
