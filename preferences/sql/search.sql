-- Full-text search over the strings inside values. The words of a record stand in a row beside it,
-- written by a trigger and deleted with it: an index on the value itself would be written, with all
-- the others, whenever any value is replaced (measured: docs/decisions/0031).

ALTER TABLE consentful_preference_words
    ADD CONSTRAINT consentful_words_preference
        FOREIGN KEY (tenant_id, preference_id) REFERENCES consentful_preference (tenant_id, id)
        ON DELETE CASCADE NOT VALID;
ALTER TABLE consentful_preference_words VALIDATE CONSTRAINT consentful_words_preference;
SELECT consentful_isolate('consentful_preference_words');

-- Where a record can be searched: its own scope, its owner's repositories (no name of one holds an
-- asterisk), all that is shared.
CREATE FUNCTION consentful_places(scope text, is_shared boolean) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY[scope]
        || CASE WHEN scope ^@ 'repo::' THEN ARRAY[split_part(scope, '/', 1) || '/*'] ELSE '{}' END
        || CASE WHEN is_shared THEN ARRAY['*'] ELSE '{}' END
$$;

-- A place of one tenant as a word, so that the index finds nothing outside of it. No text has such
-- words: the parser of texts takes a control character for a blank.
CREATE FUNCTION consentful_mark(tenant bigint, place text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT chr(1) || left(encode(sha256(convert_to(tenant || '/' || place, 'UTF8')), 'hex'), 20)
$$;

-- All words of a record: those of its key, which weigh more, and of the strings in its value; NULL
-- where nobody searches it. A key is divided where a file name or a host would not be. Statements
-- that only assign are evaluated in place, where a query would be run.
CREATE FUNCTION consentful_words(record consentful_preference) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    words tsvector;
    marks text[] := ARRAY[consentful_mark(record.tenant_id, record.scope)];
BEGIN
    -- Not so long that a write would wait for its words.
    IF octet_length(record.value::text) > 8192 THEN
        RETURN NULL;
    END IF;
    words := json_to_tsvector('pg_catalog.simple', record.value, '["string"]');
    IF length(words) = 0 THEN
        RETURN NULL;
    END IF;
    -- As of `consentful_places`.
    IF record.scope ^@ 'repo::' THEN
        marks := marks || consentful_mark(record.tenant_id, split_part(record.scope, '/', 1) || '/*');
    END IF;
    IF record.subject_id IS NULL THEN
        marks := marks || consentful_mark(record.tenant_id, '*');
    END IF;
    RETURN words || array_to_tsvector(marks)
        || setweight(to_tsvector('pg_catalog.simple', translate(record.key, '._-:@', '     ')), 'A');
END
$$;

-- Without a WHEN: that would be read and planned anew with every statement, and cost more than
-- calling this (measured).
CREATE FUNCTION consentful_note_words() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    said tsvector;
    stood tsvector;
BEGIN
    IF NEW.archived_at IS NULL AND json_typeof(NEW.value) IN ('string', 'array', 'object') THEN
        said := consentful_words(NEW);
    END IF;
    IF TG_OP = 'UPDATE' AND json_typeof(OLD.value) IN ('string', 'array', 'object') THEN
        SELECT w.words INTO stood FROM consentful_preference_words w
        WHERE w.tenant_id = NEW.tenant_id AND w.preference_id = NEW.id;
    END IF;
    IF stood IS NULL AND said IS NOT NULL THEN
        INSERT INTO consentful_preference_words (tenant_id, preference_id, words)
        VALUES (NEW.tenant_id, NEW.id, said);
    ELSIF said IS NULL AND stood IS NOT NULL THEN
        DELETE FROM consentful_preference_words w
        WHERE w.tenant_id = NEW.tenant_id AND w.preference_id = NEW.id;
    ELSIF stood <> said THEN
        UPDATE consentful_preference_words w SET words = said
        WHERE w.tenant_id = NEW.tenant_id AND w.preference_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER consentful_note_words
    AFTER INSERT OR UPDATE OF value, scope, archived_at ON consentful_preference
    FOR EACH ROW EXECUTE FUNCTION consentful_note_words();

-- The live records in `places` that hold what is asked for and that the gate lets the caller see:
-- consent, expiry, restriction and archive decide here, in the snapshot of the statement that asks.
-- As the owner, who is not held by row-level security, under which no index of words is used; so it
-- filters the tenant itself, three times: the announced one, by the marks, and by the rows.
--   places   as of `consentful_places`
--   queries  what somebody typed, once for each way to write it in Unicode
-- Bounded: of the records that hold the words, the 2,000 newest are looked at.
CREATE FUNCTION consentful_search(
    tenant bigint, agent text, places text[], queries text[], most integer
) RETURNS TABLE (record bigint, score real)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    moment timestamptz := consentful_now();
    asked tsquery := '';
    there tsquery;
BEGIN
    IF tenant IS DISTINCT FROM consentful_tenant() THEN
        RAISE EXCEPTION 'this transaction works for another tenant'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT string_agg(quote_literal(consentful_mark(tenant, place)), ' | ')::tsquery INTO there
    FROM unnest(places) AS place;
    SELECT coalesce(string_agg('(' || way::text || ')', ' | '), '')::tsquery INTO asked
    FROM (SELECT DISTINCT websearch_to_tsquery('pg_catalog.simple', one) FROM unnest(queries) AS one)
        AS typed (way)
    WHERE numnode(way) > 0;
    IF there IS NULL OR numnode(asked) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
        WITH matching AS MATERIALIZED (
            SELECT w.preference_id, w.words FROM consentful_preference_words w
            WHERE w.words @@ (asked && there) AND w.tenant_id = tenant
            -- Not the bare id: its index would lead backwards through the rows of other tenants.
            ORDER BY w.preference_id + 0 DESC LIMIT 2000
        )
        SELECT p.id, ts_rank(m.words, asked, 1 | 32) AS worth
        FROM matching m
        JOIN consentful_preference p ON p.tenant_id = tenant AND p.id = m.preference_id
        LEFT JOIN consentful_purpose u ON u.tenant_id = tenant AND u.id = p.purpose_id
        LEFT JOIN consentful_consent_state s
            ON s.tenant_id = tenant AND s.subject_id = p.subject_id AND s.purpose_id = p.purpose_id
        WHERE consentful_places(p.scope, p.subject_id IS NULL) && places
          AND p.archived_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > moment)
          AND (p.subject_id IS NULL OR consentful_verdict(
                CASE WHEN agent IS NULL THEN true
                     ELSE consentful_serves(tenant, agent, p.purpose_id) END,
                u.lawful_basis, u.required_version, s.decision, s.version, s.expires_at, moment,
                CASE WHEN s.id IS NULL OR s.restricted IS NOT NULL
                     THEN consentful_is_restricted(tenant, p.subject_id, p.key) ELSE false END)
              IS NULL)
        ORDER BY worth DESC, p.updated_at DESC, p.id DESC
        LIMIT most;
END
$$;
