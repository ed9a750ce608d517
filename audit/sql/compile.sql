-- A capture function for each table, which names the table's columns one by one: looked up by name
-- with every write, they would cost more than the write. Compiled when a table is put under
-- capture, and anew after every migration.
--   noun            what an event calls the record
--   verb_of_update  what it calls an UPDATE
--   verb_column     the column whose content is the verb of an INSERT (the ledger's decision), or ''

-- The body of the function, which fires AFTER INSERT, UPDATE OR DELETE, per row.
--
-- The digest of a version covers the columns by name, those that are null left out, so that a later
-- migration may add a nullable column without touching a row. Member values are the database's
-- own JSON text; a stored value of type json stays as it was written.
CREATE FUNCTION consentful_capture_body(
    target regclass, noun text, verb_of_update text, verb_column text
) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    columns text[];
    covered text;
    changed text;
    tenant text;
    event text;
BEGIN
    SELECT array_agg(a.attname::text),
           string_agg(format(
               CASE a.atttypid WHEN 'json'::regtype THEN '%L || nullif(NEW.%I::text, ''null'')'
                               ELSE '%L || to_json(NEW.%I)::text' END,
               a.attname || '=', a.attname), E',\n            ' ORDER BY a.attname::text COLLATE "C"),
           string_agg(format(
               CASE a.atttypid
                   WHEN 'json'::regtype
                       THEN 'CASE WHEN NEW.%1$I::text IS DISTINCT FROM OLD.%1$I::text THEN %1$L END'
                   ELSE 'CASE WHEN NEW.%1$I IS DISTINCT FROM OLD.%1$I THEN %1$L END' END,
               a.attname), E',\n            ' ORDER BY a.attname::text COLLATE "C")
               FILTER (WHERE a.attname NOT IN ('revision', 'salt'))
    INTO columns, covered, changed
    FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped;
    tenant := CASE WHEN noun = 'tenant' THEN '{row}.id'
                   WHEN 'tenant_id' = ANY (columns) THEN 'coalesce({row}.tenant_id, 0)'
                   ELSE '0' END;
    -- Who is concerned and where it stands, read from the row itself.
    event := format(
        'event := consentful_append_event(%s, %L || verb, ''done'', %L, {row}.id, %s, %s, %s, %s, %s,',
        tenant, noun || '.', noun,
        CASE WHEN noun = 'subject' THEN '{row}.id'
             WHEN 'subject_id' = ANY (columns) THEN '{row}.subject_id' ELSE 'NULL' END,
        CASE WHEN noun = 'subject' THEN '{row}.external_id'
             WHEN 'subject_id' = ANY (columns)
                 THEN format('consentful_subject_name(%s, {row}.subject_id)', tenant)
             ELSE 'NULL' END,
        CASE WHEN 'scope' = ANY (columns) THEN '{row}.scope' ELSE 'NULL' END,
        CASE WHEN 'key' = ANY (columns) THEN '{row}.key' ELSE 'NULL' END,
        CASE WHEN noun = 'purpose' THEN '{row}.slug'
             WHEN 'purpose_id' = ANY (columns)
                 THEN format('consentful_purpose_slug(%s, {row}.purpose_id)', tenant)
             ELSE 'NULL' END);
    RETURN format(
        $body$
DECLARE
    verb text;
    changed text[] := '{}';
    event bigint;
    context json := nullif(current_setting('consentful.context', true), '')::json;
BEGIN
    IF TG_OP = 'DELETE' THEN
        verb := CASE WHEN %s THEN 'expired' ELSE 'deleted' END;
        %s changed, OLD.revision, NULL, NULL, context);
        RETURN NULL;
    ELSIF TG_OP = 'INSERT' THEN
        verb := %s;
    ELSIF NEW *= OLD THEN
        RETURN NULL;
    ELSE
        -- Each tenant has a trail of its own: a row cannot move from one to another.
        IF %s IS DISTINCT FROM %s THEN
            RAISE EXCEPTION 'a row of %% cannot change its tenant', TG_TABLE_NAME
                USING ERRCODE = 'insufficient_privilege', HINT = 'Create it there and delete it here.';
        END IF;
        verb := %s;
        changed := array_remove(ARRAY[
            %s], NULL);
    END IF;
    %s
        changed, CASE TG_OP WHEN 'UPDATE' THEN OLD.revision END, NEW.revision,
        encode(sha256(convert_to(NEW.salt || ';' || concat_ws(';',
            %s), 'UTF8')), 'hex'),
        context);
    RETURN NULL;
END
$body$,
        CASE WHEN 'expires_at' = ANY (columns) THEN 'OLD.expires_at <= consentful_now()' ELSE 'false' END,
        replace(event, '{row}', 'OLD'),
        CASE verb_column WHEN '' THEN '''created''' ELSE format('NEW.%I', verb_column) END,
        replace(tenant, '{row}', 'NEW'), replace(tenant, '{row}', 'OLD'),
        'CASE '
        || CASE WHEN 'held_at' = ANY (columns) THEN
            'WHEN NEW.held_at IS DISTINCT FROM OLD.held_at'
            ' THEN CASE WHEN NEW.held_at IS NULL THEN ''released'' ELSE ''held'' END ' ELSE '' END
        || CASE WHEN 'archived_at' = ANY (columns) THEN
            'WHEN (NEW.archived_at IS NULL) <> (OLD.archived_at IS NULL)'
            ' THEN CASE WHEN NEW.archived_at IS NULL THEN ''restored'' ELSE ''archived'' END ' ELSE '' END
        || format('WHEN true THEN %L END', verb_of_update),
        changed, replace(event, '{row}', 'NEW'), covered);
END
$$;

-- The tables under capture: the function that each one's trigger calls, and what was said of it.
CREATE FUNCTION consentful_captured()
RETURNS TABLE (target regclass, capture text, noun text, verb_of_update text, verb_column text)
LANGUAGE sql STABLE
AS $$
    SELECT t.tgrelid::regclass, t.tgfoid::regproc::text, said[1], said[2], said[3]
    FROM pg_trigger t, string_to_array(encode(t.tgargs, 'escape'), '\000') AS said
    WHERE t.tgname = 'consentful_capture' AND NOT t.tgisinternal
$$;

-- Create or replace a table's capture function, and return its name. Called when a table is put
-- under capture, and where a migration has added a column or taken one away.
CREATE FUNCTION consentful_compile(
    target regclass, noun text, verb_of_update text, verb_column text
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    capture text := 'consentful_capture_' || noun;
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER'
        ' SET search_path = public, pg_temp SET timezone = ''UTC'' AS %L',
        capture, consentful_capture_body(target, noun, verb_of_update, verb_column));
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %I() FROM PUBLIC', capture);
    RETURN capture;
END
$$;

-- Put a table under capture. Called by migrations, as owner.
CREATE FUNCTION consentful_attach(
    target regclass, noun text, verb_of_update text DEFAULT 'changed', verb_column text DEFAULT ''
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER consentful_revise BEFORE INSERT OR UPDATE ON %s
        FOR EACH ROW EXECUTE FUNCTION consentful_revise()', target);
    EXECUTE format('CREATE TRIGGER consentful_capture AFTER INSERT OR UPDATE OR DELETE ON %s
        FOR EACH ROW EXECUTE FUNCTION %I(%L, %L, %L)',
        target, consentful_compile(target, noun, verb_of_update, verb_column),
        noun, verb_of_update, verb_column);
    EXECUTE format('CREATE TRIGGER consentful_no_truncate BEFORE TRUNCATE ON %s
        FOR EACH STATEMENT EXECUTE FUNCTION consentful_refuse(%L)',
        target, 'TRUNCATE leaves no events: delete the rows.');
END
$$;

REVOKE EXECUTE ON FUNCTION consentful_compile(regclass, text, text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_attach(regclass, text, text, text) FROM PUBLIC;
