-- Whether a value may follow another, by the status of both. A value begins in a state that no other
-- leads to; in any, where each is led to. So does what is in no declared state yet.
CREATE FUNCTION consentful_may_step(transitions json, old json, new json) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    was text := old ->> 'status';
    becomes text := new ->> 'status';
    known text[] := ARRAY(SELECT json_object_keys(transitions));
    led_to text[] := ARRAY(
        SELECT following FROM json_each(transitions) AS step (state, all_following),
            json_array_elements_text(all_following) AS following
        WHERE following <> state);
BEGIN
    IF was = ANY (known || led_to) THEN
        RETURN becomes IN (SELECT json_array_elements_text(transitions -> was));
    END IF;
    RETURN becomes = ANY (known || led_to)
        AND (NOT becomes = ANY (led_to) OR known <@ led_to);
END
$$;

-- Write one record: fence, gate, then compare and set.
--   mode        create | replace (one of `revisions`) | any (whatever live record) | upsert;
--               archive | restore (one of `revisions`), which leave all but `archived_at` as it is
--   writer      subject | operator | agent: what a definition's writers are asked for
--   assumed     revision of the definition that the value was checked against; NULL for none
--   is_checked  false: stop after the gate and answer 'checked' (the value was refused, or an
--               idempotency key has to be looked up first)
-- Outcomes: created, replaced, archived, restored, checked, definition_changed, or the code of the refusal.
CREATE FUNCTION consentful_preference_put(
    tenant bigint, context text, scope text, kind text, subject text, key text, agent text,
    writer text, source text, actor text, assumed text, is_checked boolean,
    mode text, revisions text[], value text, tags text[], metadata text, provenance text,
    has_deadline boolean, ttl bigint, deadline timestamptz
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
    latest timestamptz;
    expires timestamptz;
    is_live boolean;
    stored text;
    who bigint;
    fences text[] := CASE WHEN subject IS NULL THEN '{}' ELSE ARRAY[subject] END;
BEGIN
    PERFORM consentful_enter(tenant, context, fences, false);
    moment := consentful_now();
    rule := consentful_governing(tenant, kind, key);
    IF rule.definition IS DISTINCT FROM assumed THEN
        RETURN consentful_answer_of('definition_changed', NULL, NULL);
    ELSIF NOT rule.is_open THEN
        RETURN consentful_answer_of('undeclared_key', NULL, NULL);
    ELSIF (rule.definition IS NOT NULL AND NOT writer = ANY (rule.writers))
       OR (rule.definition IS NULL AND kind <> 'user' AND writer = 'subject') THEN
        RETURN consentful_answer_of('permission_denied', NULL, NULL);
    END IF;

    LOOP
        SELECT p.* INTO record FROM consentful_preference p
        WHERE p.tenant_id = tenant AND p.scope = consentful_preference_put.scope
          AND p.key = consentful_preference_put.key
        FOR UPDATE;
        -- The lock may have been waited for.
        moment := consentful_now();
        is_live := record.id IS NOT NULL AND (record.expires_at IS NULL OR record.expires_at > moment);
        purpose := rule.purpose;
        IF kind = 'user' THEN
            outcome := consentful_gate(tenant, subject, rule.purpose_id, agent, moment, key);
            IF is_live AND record.purpose_id <> rule.purpose_id THEN
                stored := consentful_gate(tenant, subject, record.purpose_id, agent, moment, key);
                -- What an agent was not given comes before what the person did not agree to, and
                -- that before what is restricted.
                IF stored IS NOT NULL AND (outcome IS NULL
                   OR outcome <> 'purpose_not_allowed' AND stored = 'purpose_not_allowed'
                   OR outcome = 'restricted' AND stored <> 'restricted') THEN
                    purpose := consentful_purpose_slug(tenant, record.purpose_id);
                    outcome := stored;
                END IF;
            END IF;
            IF outcome IS NULL AND record.held_at IS NOT NULL
               AND consentful_is_held(record.held_at, record.held_until, moment) THEN
                outcome := 'held';
            END IF;
            IF outcome IS NOT NULL THEN
                RETURN consentful_answer_of(outcome, purpose, NULL);
            END IF;
        END IF;
        IF NOT is_checked THEN
            RETURN consentful_answer_of('checked', purpose, NULL);
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
            RETURN consentful_answer_of(outcome, purpose, NULL);
        END IF;

        IF NOT is_live AND mode NOT IN ('create', 'upsert') THEN
            outcome := 'stale_revision';
            record := NULL;
        ELSIF is_live AND mode = 'create' THEN
            outcome := 'already_exists';
        ELSIF is_live AND mode IN ('replace', 'archive', 'restore')
           AND NOT record.revision = ANY (revisions) THEN
            outcome := 'stale_revision';
        ELSIF is_live AND mode = 'restore' AND record.archived_at IS NULL THEN
            outcome := 'already_exists';
        ELSIF is_live AND mode = 'restore' THEN
            UPDATE consentful_preference p SET archived_at = NULL
            WHERE p.id = record.id RETURNING p.* INTO record;
            outcome := 'restored';
        ELSIF is_live AND record.archived_at IS NOT NULL THEN
            -- It stands in the way until somebody restores or deletes it.
            outcome := CASE mode WHEN 'upsert' THEN 'already_exists' ELSE 'stale_revision' END;
        ELSIF is_live AND mode = 'archive' THEN
            UPDATE consentful_preference p SET archived_at = moment
            WHERE p.id = record.id RETURNING p.* INTO record;
            outcome := 'archived';
        ELSIF rule.transitions IS NOT NULL AND (is_live OR source <> 'import')
           AND NOT consentful_may_step(
               rule.transitions, CASE WHEN is_live THEN record.value END,
               consentful_preference_put.value::json) THEN
            -- Under the lock of the row: of two who take one step, the second is refused. What an
            -- export brings back may begin where it was.
            outcome := 'invalid_transition';
            record := CASE WHEN is_live THEN record END;
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
        RETURN consentful_answer_of(outcome, purpose, record);
    END LOOP;
END
$$;
