-- The hot read and the hot delete, one function each; the hot write stands in put.sql. PL/pgSQL
-- functions that are VOLATILE take a fresh snapshot per statement, so fence, gate and compare-and-set
-- may share one round trip.

ALTER TABLE consentful_definition ADD CONSTRAINT consentful_definition_purpose
    FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id);
ALTER TABLE consentful_undeclared_rule ADD CONSTRAINT consentful_undeclared_purpose
    FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id);
ALTER TABLE consentful_preference
    ADD CONSTRAINT consentful_preference_purpose
        FOREIGN KEY (tenant_id, purpose_id) REFERENCES consentful_purpose (tenant_id, id),
    ADD CONSTRAINT consentful_preference_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id),
    -- psycopg cannot read infinity or far years back.
    ADD CONSTRAINT consentful_preference_finite CHECK (
        expires_at > '0001-01-01 00:00:00+00' AND expires_at < '9999-12-31 00:00:00+00'),
    ADD CONSTRAINT consentful_preference_personal CHECK (
        (scope LIKE 'user::%') = (subject_id IS NOT NULL)
        AND (subject_id IS NULL OR purpose_id IS NOT NULL));

SELECT consentful_attach('consentful_definition', 'definition');
SELECT consentful_attach('consentful_undeclared_rule', 'undeclared_rule');
SELECT consentful_attach('consentful_preference', 'preference', 'replaced');
SELECT consentful_isolate('consentful_definition');
SELECT consentful_isolate('consentful_undeclared_rule');
SELECT consentful_isolate('consentful_preference');

-- What governs a key at a kind of scope: its definition where that names the kind, else the rule
-- for undeclared keys. A retired definition still governs reads and deletes.
CREATE FUNCTION consentful_governing(
    tenant bigint, kind text, key text,
    OUT purpose_id bigint, OUT is_open boolean, OUT writers text[], OUT ttl_default bigint,
    OUT ttl_max bigint, OUT definition text
)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT d.purpose_id, d.retired_at IS NULL, d.writers::text[], d.ttl_default, d.ttl_max, d.revision
    INTO purpose_id, is_open, writers, ttl_default, ttl_max, definition
    FROM consentful_definition d
    WHERE d.tenant_id = tenant AND d.key = consentful_governing.key
      AND consentful_governing.kind = ANY (d.scopes);
    IF NOT FOUND THEN
        SELECT u.purpose_id, u.is_allowed INTO purpose_id, is_open
        FROM consentful_undeclared_rule u
        WHERE u.tenant_id = tenant AND u.kind = consentful_governing.kind;
        is_open := coalesce(is_open, false);
        IF NOT is_open THEN
            purpose_id := NULL;
        END IF;
    END IF;
END
$$;

-- Read one live record. The record is read before the gate: a value is returned only where
-- consent was still in force after it had been read.
CREATE FUNCTION consentful_preference_get(
    tenant bigint, scope text, kind text, subject text, key text, agent text
) RETURNS TABLE (outcome text, purpose text, record consentful_preference)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    moment timestamptz := consentful_now();
    governing bigint;
BEGIN
    PERFORM set_config('consentful.tenant', tenant::text, true);
    SELECT p.* INTO record FROM consentful_preference p
    WHERE p.tenant_id = tenant AND p.scope = consentful_preference_get.scope
      AND p.key = consentful_preference_get.key
      AND (p.expires_at IS NULL OR p.expires_at > moment);
    governing := record.purpose_id;
    IF kind = 'user' THEN
        IF governing IS NULL THEN
            SELECT g.purpose_id INTO governing FROM consentful_governing(tenant, kind, key) g;
        END IF;
        IF governing IS NOT NULL THEN
            outcome := consentful_gate(tenant, subject, governing, agent, moment);
        END IF;
    END IF;
    purpose := consentful_purpose_slug(tenant, governing);
    IF outcome IS NOT NULL THEN
        record := NULL;
    ELSIF record.id IS NULL THEN
        outcome := 'not_found';
    ELSE
        outcome := 'found';
    END IF;
    RETURN NEXT;
END
$$;

-- Detail and confidence are the last writer's; of the origin, what is known last stays known.
CREATE FUNCTION consentful_merge_provenance(old json, new json) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN old ->> 'origin' = '{}' OR (old -> 'origin')::text = (new -> 'origin')::text THEN new
        ELSE json_build_object(
            'detail', new -> 'detail',
            'origin', ((old -> 'origin')::jsonb || (new -> 'origin')::jsonb)::json,
            'confidence', new -> 'confidence')
    END
$$;

-- Delete one record. Needs no consent: forgetting stays possible after a withdrawal.
-- `revisions`: NULL deletes whatever stands there, expired rows included; {*} any live record.
-- `is_checked` as for a write.
CREATE FUNCTION consentful_preference_delete(
    tenant bigint, context text, scope text, kind text, subject text, key text, agent text,
    writer text, revisions text[], is_checked boolean
) RETURNS TABLE (outcome text, purpose text, record consentful_preference)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
    rule record;
    governing bigint;
    is_live boolean;
    fences text[] := CASE WHEN subject IS NULL THEN '{}' ELSE ARRAY[subject] END;
BEGIN
    PERFORM consentful_enter(tenant, context, fences, false);
    SELECT p.* INTO record FROM consentful_preference p
    WHERE p.tenant_id = tenant AND p.scope = consentful_preference_delete.scope
      AND p.key = consentful_preference_delete.key
    FOR UPDATE;
    moment := consentful_now();
    is_live := record.id IS NOT NULL AND (record.expires_at IS NULL OR record.expires_at > moment);
    SELECT g.* INTO rule FROM consentful_governing(tenant, kind, key) g;
    governing := coalesce(record.purpose_id, rule.purpose_id);
    purpose := consentful_purpose_slug(tenant, governing);
    IF kind = 'user' AND agent IS NOT NULL AND governing IS NOT NULL
       AND NOT consentful_serves(tenant, agent, governing) THEN
        outcome := 'purpose_not_allowed';
        record := NULL;
    ELSIF kind <> 'user' AND writer = 'subject'
       AND NOT coalesce('subject' = ANY (rule.writers), false) THEN
        outcome := 'permission_denied';
        record := NULL;
    ELSIF NOT is_checked THEN
        outcome := 'checked';
        record := NULL;
    ELSIF revisions IS NOT NULL AND NOT is_live THEN
        outcome := 'stale_revision';
        record := NULL;
    ELSIF revisions IS NOT NULL AND NOT (record.revision = ANY (revisions) OR '*' = ANY (revisions)) THEN
        outcome := 'stale_revision';
    ELSIF record.id IS NULL THEN
        outcome := 'not_found';
    ELSE
        DELETE FROM consentful_preference p WHERE p.id = record.id;
        outcome := 'deleted';
    END IF;
    RETURN NEXT;
END
$$;
