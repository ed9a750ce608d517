-- The hot read and the hot writes, one function each. PL/pgSQL functions that are VOLATILE take a
-- fresh snapshot per statement, so fence, gate and compare-and-set may share one round trip.

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

-- Write one record: fence, gate, then compare and set.
--   mode        create | replace (one of `revisions`) | any (whatever live record) | upsert
--   writer      subject | operator | agent: what a definition's writers are asked for
--   assumed     revision of the definition that the value was checked against; NULL for none
--   is_checked  false: stop after the gate and answer 'checked' (the value was refused, or an
--               idempotency key has to be looked up first)
-- Outcomes: created, replaced, checked, definition_changed, or the code of the refusal.
CREATE FUNCTION consentful_preference_put(
    tenant bigint, context text, scope text, kind text, subject text, key text, agent text,
    writer text, source text, actor text, assumed text, is_checked boolean,
    mode text, revisions text[], value text, tags text[], metadata text, provenance text,
    has_deadline boolean, ttl bigint, deadline timestamptz
) RETURNS TABLE (outcome text, purpose text, record consentful_preference)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
    rule record;
    latest timestamptz;
    expires timestamptz;
    is_live boolean;
    who bigint;
    fences text[] := CASE WHEN subject IS NULL THEN '{}' ELSE ARRAY[subject] END;
BEGIN
    PERFORM consentful_enter(tenant, context, fences, false);
    moment := consentful_now();
    SELECT g.* INTO rule FROM consentful_governing(tenant, kind, key) g;
    IF rule.definition IS DISTINCT FROM assumed THEN
        outcome := 'definition_changed';
        RETURN NEXT; RETURN;
    ELSIF NOT rule.is_open THEN
        outcome := 'undeclared_key';
        RETURN NEXT; RETURN;
    ELSIF (rule.definition IS NOT NULL AND NOT writer = ANY (rule.writers))
       OR (rule.definition IS NULL AND kind <> 'user' AND writer = 'subject') THEN
        outcome := 'permission_denied';
        RETURN NEXT; RETURN;
    END IF;

    LOOP
        SELECT p.* INTO record FROM consentful_preference p
        WHERE p.tenant_id = tenant AND p.scope = consentful_preference_put.scope
          AND p.key = consentful_preference_put.key
        FOR UPDATE;
        -- The lock may have been waited for.
        moment := consentful_now();
        is_live := record.id IS NOT NULL AND (record.expires_at IS NULL OR record.expires_at > moment);
        IF kind = 'user' THEN
            purpose := consentful_purpose_slug(tenant, rule.purpose_id);
            outcome := consentful_gate(tenant, subject, rule.purpose_id, agent, moment);
            IF outcome IS NULL AND is_live AND record.purpose_id <> rule.purpose_id THEN
                purpose := consentful_purpose_slug(tenant, record.purpose_id);
                outcome := consentful_gate(tenant, subject, record.purpose_id, agent, moment);
            END IF;
            IF outcome IS NOT NULL THEN
                record := NULL;
                RETURN NEXT; RETURN;
            END IF;
        END IF;
        purpose := consentful_purpose_slug(tenant, rule.purpose_id);
        IF NOT is_checked THEN
            outcome := 'checked';
            RETURN NEXT; RETURN;
        END IF;

        latest := CASE WHEN rule.ttl_max IS NOT NULL
            THEN moment + make_interval(secs => least(rule.ttl_max, 250000000000)) END;
        IF ttl IS NOT NULL AND ttl > extract(epoch FROM '9999-12-31 00:00:00+00' - moment) THEN
            outcome := 'invalid_ttl';
        ELSIF ttl IS NOT NULL THEN
            expires := moment + make_interval(secs => ttl);
        ELSIF deadline IS NOT NULL THEN
            expires := deadline;
        END IF;
        IF expires <= moment OR expires >= '9999-12-31 00:00:00+00' OR expires > latest
           OR (has_deadline AND expires IS NULL AND latest IS NOT NULL) THEN
            outcome := 'invalid_ttl';
        END IF;
        IF outcome IS NOT NULL THEN
            record := NULL;
            RETURN NEXT; RETURN;
        END IF;

        IF NOT is_live AND mode IN ('replace', 'any') THEN
            outcome := 'stale_revision';
            record := NULL;
        ELSIF is_live AND mode = 'create' THEN
            outcome := 'already_exists';
        ELSIF is_live AND mode = 'replace' AND NOT record.revision = ANY (revisions) THEN
            outcome := 'stale_revision';
        ELSIF is_live THEN
            UPDATE consentful_preference p SET
                value = consentful_preference_put.value::json,
                purpose_id = rule.purpose_id,
                tags = coalesce(consentful_preference_put.tags, p.tags),
                metadata = coalesce(consentful_preference_put.metadata::json, p.metadata),
                source = consentful_preference_put.source,
                actor = consentful_preference_put.actor,
                provenance = consentful_merge_provenance(
                    p.provenance, consentful_preference_put.provenance::json),
                seen_count = p.seen_count + 1,
                updated_at = greatest(moment, p.updated_at + interval '1 microsecond'),
                expires_at = CASE WHEN has_deadline THEN expires ELSE p.expires_at END
            WHERE p.id = record.id RETURNING p.* INTO record;
            outcome := 'replaced';
        ELSE
            IF record.id IS NOT NULL THEN
                DELETE FROM consentful_preference p WHERE p.id = record.id;
            END IF;
            IF subject IS NOT NULL THEN
                who := consentful_ensure_subject(tenant, subject);
            END IF;
            IF NOT has_deadline THEN
                expires := CASE WHEN coalesce(rule.ttl_default, rule.ttl_max) IS NOT NULL
                    THEN moment + make_interval(
                        secs => least(coalesce(rule.ttl_default, rule.ttl_max), 250000000000)) END;
            END IF;
            INSERT INTO consentful_preference AS p (
                tenant_id, scope, key, subject_id, purpose_id, value, tags, metadata, source, actor,
                provenance, seen_count, created_at, updated_at, expires_at)
            VALUES (
                tenant, consentful_preference_put.scope, consentful_preference_put.key, who,
                rule.purpose_id, consentful_preference_put.value::json,
                coalesce(consentful_preference_put.tags, '{}'),
                coalesce(consentful_preference_put.metadata, '{}')::json,
                consentful_preference_put.source, consentful_preference_put.actor,
                consentful_preference_put.provenance::json, 1, moment, moment, expires)
            ON CONFLICT (tenant_id, scope, key) DO NOTHING RETURNING p.* INTO record;
            IF record.id IS NULL THEN
                CONTINUE;  -- a twin created it meanwhile: judge by what stands there now
            END IF;
            outcome := 'created';
        END IF;
        RETURN NEXT; RETURN;
    END LOOP;
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
