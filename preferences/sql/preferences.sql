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
    OUT purpose_id bigint, OUT purpose text, OUT is_open boolean, OUT writers text[],
    OUT ttl_default bigint, OUT ttl_max bigint, OUT transitions json, OUT definition text
)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    SELECT d.purpose_id, u.slug, d.retired_at IS NULL, d.writers::text[], d.ttl_default, d.ttl_max,
           d.transitions, d.revision
    INTO purpose_id, purpose, is_open, writers, ttl_default, ttl_max, transitions, definition
    FROM consentful_definition d
    LEFT JOIN consentful_purpose u ON u.tenant_id = tenant AND u.id = d.purpose_id
    WHERE d.tenant_id = tenant AND d.key = consentful_governing.key
      AND consentful_governing.kind = ANY (d.scopes);
    IF NOT FOUND THEN
        SELECT r.purpose_id, u.slug, r.is_allowed INTO purpose_id, purpose, is_open
        FROM consentful_undeclared_rule r
        LEFT JOIN consentful_purpose u ON u.tenant_id = tenant AND u.id = r.purpose_id
        WHERE r.tenant_id = tenant AND r.kind = consentful_governing.kind;
        is_open := coalesce(is_open, false);
        IF NOT is_open THEN
            purpose_id := NULL;
            purpose := NULL;
        END IF;
    END IF;
END
$$;

-- What a read, a write or a delete answers: its outcome, the purpose that decided, and the record
-- in the form that travels, with its JSON as text. Flat, since a column of a composite is looked
-- up anew for every member.
CREATE TYPE consentful_answer AS (
    outcome text, purpose text, id bigint, scope text, key text, value text, revision text,
    tags text[], metadata text, source text, actor text, provenance text, seen_count bigint,
    created_at timestamptz, updated_at timestamptz, expires_at timestamptz,
    archived_at timestamptz
);

CREATE FUNCTION consentful_answer_of(outcome text, purpose text, record consentful_preference)
RETURNS consentful_answer
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    answer consentful_answer := ROW(
        outcome, purpose, record.id, record.scope, record.key, record.value, record.revision,
        record.tags, record.metadata, record.source, record.actor, record.provenance,
        record.seen_count, record.created_at, record.updated_at, record.expires_at,
        record.archived_at);
BEGIN
    RETURN answer;
END
$$;

-- Read one live record; an archived one reads like none. A record and the consent that governs it are read in one snapshot; only
-- where there is no record is it asked separately which purpose would govern it, since the gate
-- comes before existence.
CREATE FUNCTION consentful_preference_get(
    tenant bigint, scope text, kind text, subject text, key text, agent text
) RETURNS consentful_answer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    answer consentful_answer;
    moment timestamptz := consentful_now();
    rule record;
    said text;
BEGIN
    said := set_config('consentful.tenant', tenant::text, true);
    SELECT CASE WHEN p.subject_id IS NOT NULL THEN consentful_verdict(
               CASE WHEN agent IS NULL THEN true
                    ELSE consentful_serves(tenant, agent, p.purpose_id) END,
               u.lawful_basis, u.required_version, s.decision, s.version, s.expires_at, moment,
               CASE WHEN s.id IS NULL OR s.restricted IS NOT NULL
                    THEN consentful_is_restricted(tenant, p.subject_id, p.key) ELSE false END) END,
           u.slug, p.id, p.scope, p.key, p.value::text, p.revision, p.tags, p.metadata::text,
           p.source, p.actor, p.provenance::text, p.seen_count, p.created_at, p.updated_at,
           p.expires_at, NULL
    INTO answer
    FROM consentful_preference p
    LEFT JOIN consentful_purpose u ON u.tenant_id = tenant AND u.id = p.purpose_id
    LEFT JOIN consentful_consent_state s
        ON s.tenant_id = tenant AND s.subject_id = p.subject_id AND s.purpose_id = p.purpose_id
    WHERE p.tenant_id = tenant AND p.scope = consentful_preference_get.scope
      AND p.key = consentful_preference_get.key
      AND p.archived_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > moment);
    IF answer.id IS NULL THEN
        IF kind = 'user' THEN
            rule := consentful_governing(tenant, kind, key);
            IF rule.purpose_id IS NOT NULL THEN
                answer.outcome := consentful_gate(
                    tenant, subject, rule.purpose_id, agent, moment, key);
                answer.purpose := rule.purpose;
            END IF;
        END IF;
        answer.outcome := coalesce(answer.outcome, 'not_found');
    ELSIF answer.outcome IS NULL THEN
        answer.outcome := 'found';
    ELSE
        answer := ROW(answer.outcome, answer.purpose, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    END IF;
    RETURN answer;
END
$$;

-- Detail and confidence are the last writer's; of the origin, what is known last stays known.
CREATE FUNCTION consentful_merge_provenance(old json, new json) RETURNS json
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
    IF old ->> 'origin' = '{}' OR (old -> 'origin')::text = (new -> 'origin')::text THEN
        RETURN new;
    END IF;
    RETURN json_build_object(
        'detail', new -> 'detail',
        'origin', ((old -> 'origin')::jsonb || (new -> 'origin')::jsonb)::json,
        'confidence', new -> 'confidence');
END
$$;

-- Delete one record, archived or not. Needs no consent: forgetting stays possible after a
-- withdrawal. What a hold keeps stays, whoever asks.
-- `revisions`: NULL deletes whatever stands there, expired rows included; {*} any live record.
-- `is_checked` as for a write.
CREATE FUNCTION consentful_preference_delete(
    tenant bigint, context text, scope text, kind text, subject text, key text, agent text,
    writer text, revisions text[], is_checked boolean
) RETURNS consentful_answer
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    outcome text;
    purpose text;
    record consentful_preference;
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
    rule := consentful_governing(tenant, kind, key);
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
    ELSIF record.held_at IS NOT NULL
       AND consentful_is_held(record.held_at, record.held_until, moment) THEN
        outcome := 'held';
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
    RETURN consentful_answer_of(outcome, purpose, record);
END
$$;
