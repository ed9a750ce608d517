-- Complete by construction: every change of a stateful table becomes an event, whichever way
-- it was made, and every version of a row gets a revision that nobody can choose.

-- BEFORE INSERT OR UPDATE: a fresh revision and a fresh salt for every version. "Always",
-- not "unless given": a caller could otherwise repeat an old one. Every name is qualified, which
-- costs nothing, where pinning the search path would be paid for with every write.
CREATE FUNCTION consentful_revise() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    -- *= compares the stored bytes: type json has no equality of its own.
    IF TG_OP = 'UPDATE' AND NEW OPERATOR(pg_catalog.*=) OLD THEN
        RETURN NEW;
    END IF;
    NEW.revision := pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', '');
    NEW.salt := pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', '');
    RETURN NEW;
END
$$;

-- The event that repeats what one row is, for `consentful_snapshot`. The digest is that of the
-- row's capture function (`consentful_capture_body`), for any table.
CREATE FUNCTION consentful_append_row(noun text, verb text, row_json json, revision text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    facts record;
    tenant bigint;
    subject bigint;
BEGIN
    SELECT string_agg(key || '=' || value::text, ';' ORDER BY key COLLATE "C")
               FILTER (WHERE value::text <> 'null') AS covered,
           max(value #>> '{}') FILTER (WHERE key = 'id')::bigint AS id,
           max(value #>> '{}') FILTER (WHERE key = 'tenant_id')::bigint AS tenant_id,
           max(value #>> '{}') FILTER (WHERE key = 'subject_id')::bigint AS subject_id,
           max(value #>> '{}') FILTER (WHERE key = 'purpose_id')::bigint AS purpose_id,
           max(value #>> '{}') FILTER (WHERE key = 'scope') AS scope,
           max(value #>> '{}') FILTER (WHERE key = 'key') AS key,
           max(value #>> '{}') FILTER (WHERE key = 'external_id') AS external_id,
           max(value #>> '{}') FILTER (WHERE key = 'slug') AS slug,
           max(value #>> '{}') FILTER (WHERE key = 'salt') AS salt
    INTO facts FROM json_each(row_json);
    tenant := CASE noun WHEN 'tenant' THEN facts.id ELSE coalesce(facts.tenant_id, 0) END;
    subject := CASE noun WHEN 'subject' THEN facts.id ELSE facts.subject_id END;
    PERFORM consentful_append_event(
        tenant, noun || '.' || verb, 'done', noun, facts.id, subject,
        CASE noun WHEN 'subject' THEN facts.external_id
             ELSE consentful_subject_name(tenant, subject) END,
        facts.scope, facts.key,
        CASE noun WHEN 'purpose' THEN facts.slug
             ELSE consentful_purpose_slug(tenant, facts.purpose_id) END,
        '{}', revision, revision,
        encode(sha256(convert_to(facts.salt || ';' || facts.covered, 'UTF8')), 'hex'),
        nullif(current_setting('consentful.context', true), '')::json);
END
$$;

-- The one INSERT into the trail. Two salted digests cover the readable columns, one for the
-- target and one for the actor, so that an erasure can blank either and the chain, which
-- covers the digests, still verifies. Both name the event and its tenant: copied to another
-- place, an event gives itself away. Its callers have pinned the search path.
CREATE FUNCTION consentful_append_event(
    tenant bigint, action text, outcome text, record text, record_id bigint,
    subject_id bigint, subject text, scope text, key text, purpose text, changed text[],
    revision_before text, revision_after text, row_digest text, context json
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    actor text := coalesce(context ->> 'actor', 'role:' || session_user);
    behalf text := context ->> 'on_behalf_of';
    request text := context ->> 'request_id';
    why text := context ->> 'reason';
    actor_salt text := replace(gen_random_uuid()::text, '-', '');
    target_salt text := replace(gen_random_uuid()::text, '-', '');
    event_id bigint := nextval('consentful_audit_event_id_seq');
BEGIN
    INSERT INTO consentful_audit_event (
        id, tenant_id, at, transaction, cluster, action, outcome, record, record_id,
        subject_id, actor_id, purpose, changed, revision_before, revision_after, row_digest,
        subject, scope, key, on_behalf_of, reason, request_id, target_salt, target_digest,
        actor, actor_salt, actor_digest)
    VALUES (
        event_id, tenant, consentful_now(), pg_current_xact_id()::text::bigint,
        consentful_cluster_of(tenant),
        action, outcome, record, record_id,
        subject_id, context ->> 'actor_id', purpose, changed,
        revision_before, revision_after, row_digest,
        subject, scope, key, behalf, why, request, target_salt,
        encode(sha256(convert_to(target_salt || ';' || json_build_array(
            tenant::text, event_id::text, subject, scope, key, behalf, why, request)::text,
            'UTF8')), 'hex'),
        actor, actor_salt,
        encode(sha256(convert_to(actor_salt || ';' || json_build_array(
            tenant::text, event_id::text, actor)::text, 'UTF8')), 'hex'));
    RETURN event_id;
END
$$;

-- Transaction ids start anew in a restored cluster, so an event says in which one it was written.
CREATE FUNCTION consentful_cluster() RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$ BEGIN RETURN (SELECT system_identifier FROM pg_control_system()); END $$;

-- The same for a writer: reading it from the server's control file costs as much as an index, so
-- the sealer leaves it beside the start of the server that it read it from. A restored copy runs in
-- a server that started at another moment.
CREATE FUNCTION consentful_cluster_of(tenant bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    known bigint := (SELECT h.cluster FROM consentful_audit_head h
                     WHERE h.tenant_id = tenant AND h.started = pg_postmaster_start_time());
BEGIN
    RETURN CASE WHEN known IS NULL THEN consentful_cluster() ELSE known END;
END
$$;

-- What is no change of data: an attempt refused, a disclosure, an injection into a prompt.
-- Changes come from triggers alone, so nobody can claim one that never happened.
-- Shares the fence of the person concerned: an erasure then blanks it, or finds it not begun. Should the
-- person be forgotten while this waits, it speaks of the pseudonym: the name must not come back.
CREATE FUNCTION consentful_record_event(
    tenant bigint, context text, action text, outcome text,
    subject text DEFAULT NULL, scope text DEFAULT NULL, key text DEFAULT NULL,
    purpose text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '3s'
AS $$
DECLARE
    fence bigint := consentful_fence_key(tenant, subject);
    known bigint := consentful_subject_id(tenant, subject);
    told json := context::json;
    pseudonym text;
BEGIN
    IF action NOT IN ('access.denied', 'data.disclosed', 'context.injected') THEN
        RAISE EXCEPTION 'events of % are written by capture alone', action
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF subject IS NOT NULL AND NOT pg_try_advisory_xact_lock_shared(fence) THEN
        PERFORM pg_advisory_xact_lock_shared(fence);
        IF known IS NOT NULL AND consentful_subject_id(tenant, subject) IS DISTINCT FROM known THEN
            pseudonym := consentful_subject_name(tenant, known);
            told := json_build_object(
                'actor', told ->> 'actor', 'actor_id', told ->> 'actor_id',
                'on_behalf_of', CASE WHEN told ->> 'on_behalf_of' = subject THEN pseudonym
                                     ELSE told ->> 'on_behalf_of' END);
            scope := CASE WHEN scope = 'user::' || subject THEN 'user::' || pseudonym END;
            key := NULL;
            subject := pseudonym;
        END IF;
    END IF;
    RETURN consentful_append_event(
        tenant, action, outcome, NULL, NULL, coalesce(known, consentful_subject_id(tenant, subject)),
        subject, scope, key, purpose, '{}', NULL, NULL, NULL, told);
END
$$;

CREATE FUNCTION consentful_subject_id(tenant bigint, subject text) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT NULL::bigint $$;

-- Insert-only, for everyone: the owner too would have to disable this trigger first.
CREATE FUNCTION consentful_refuse() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = TG_ARGV[0];
END
$$;

CREATE TRIGGER consentful_insert_only BEFORE UPDATE OR DELETE ON consentful_audit_event
    FOR EACH ROW EXECUTE FUNCTION consentful_refuse('The trail is insert-only.');
CREATE TRIGGER consentful_insert_only_all BEFORE TRUNCATE ON consentful_audit_event
    FOR EACH STATEMENT EXECUTE FUNCTION consentful_refuse('The trail is insert-only.');
CREATE TRIGGER consentful_insert_only BEFORE UPDATE OR DELETE ON consentful_audit_seal
    FOR EACH ROW EXECUTE FUNCTION consentful_refuse('The chain is insert-only.');
CREATE TRIGGER consentful_insert_only_all BEFORE TRUNCATE ON consentful_audit_seal
    FOR EACH STATEMENT EXECUTE FUNCTION consentful_refuse('The chain is insert-only.');

REVOKE EXECUTE ON FUNCTION consentful_append_event(
    bigint, text, text, text, bigint, bigint, text, text, text, text, text[], text, text, text, json
) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_append_row(text, text, json, text) FROM PUBLIC;
