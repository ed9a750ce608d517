-- The table of events in parts, each for a range of ids, so that retention can drop whole parts.
-- By id, not by date: the primary key, links and triggers stay what they are, and the last event of
-- a record is found in the newest part first. A part is closed when the operator says so, once a
-- month; nothing here happens by itself. For the owner of the tables alone.

-- The part that takes new events: the table itself while it has no parts.
CREATE FUNCTION consentful_open_part() RETURNS regclass
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(
        (SELECT part.oid FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
         WHERE inhparent = 'consentful_audit_event'::regclass
           AND pg_get_expr(part.relpartbound, part.oid) LIKE '%TO (MAXVALUE)'),
        'consentful_audit_event'::regclass)::regclass
$$;

-- The first id of a part, as its bound says it: MINVALUE or a number in quotes.
CREATE FUNCTION consentful_first_of_part(part regclass) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(
        substring(pg_get_expr(relpartbound, oid) FROM 'FROM \((.*?)\)'), 'MINVALUE')
    FROM pg_class WHERE oid = part
$$;

-- Before the split: say that the open part ends at `bound`. New events are held against it at once,
-- so `bound` lies far ahead; those that stand are read by VALIDATE CONSTRAINT, which stops nobody.
CREATE FUNCTION consentful_bound_part(bound bigint) RETURNS text
LANGUAGE plpgsql
SET search_path = public, pg_temp
SET lock_timeout = '750ms'
AS $$
DECLARE
    part regclass := consentful_open_part();
    lowest text := consentful_first_of_part(consentful_open_part());
BEGIN
    EXECUTE format(
        'ALTER TABLE %s ADD CONSTRAINT consentful_event_bounds CHECK (id < %s AND id >= %s) NOT VALID',
        part, bound, CASE lowest WHEN 'MINVALUE' THEN '(-9223372036854775808)' ELSE lowest END);
    RETURN part::text;
END
$$;

-- Close the open part at `bound` and begin the next one. The first time, the table becomes the first
-- part of a new one, which takes over its name, its triggers, its policy and who may read it.
-- Takes milliseconds, under a lock that waits for 750 ms at most: the parts are not read.
CREATE FUNCTION consentful_split_part(bound bigint) RETURNS text
LANGUAGE plpgsql
SET search_path = public, pg_temp
SET lock_timeout = '750ms'
AS $$
DECLARE
    closing regclass;
    lowest text;
    next_name text;
    one record;
    functions text[];
    indexes text[];
    triggers text[];
BEGIN
    LOCK TABLE consentful_audit_event IN ACCESS EXCLUSIVE MODE;
    closing := consentful_open_part();
    lowest := consentful_first_of_part(closing);
    IF closing = 'consentful_audit_event'::regclass THEN
        SELECT array_agg(pg_get_functiondef(oid)) INTO functions FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
          AND (prosrc ~ '\mconsentful_audit_event\M'
               OR 'consentful_audit_event'::regtype = ANY (proargtypes));
        SELECT array_agg(pg_get_indexdef(indexrelid)) INTO indexes FROM pg_index
        WHERE indrelid = closing AND NOT indisprimary;
        SELECT array_agg(pg_get_triggerdef(oid)) INTO triggers FROM pg_trigger
        WHERE tgrelid = closing AND NOT tgisinternal;
        FOR one IN SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = closing LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', one.name, one.name || '_1');
        END LOOP;
        ALTER TABLE consentful_audit_event RENAME TO consentful_audit_event_1;
        CREATE TABLE consentful_audit_event (LIKE consentful_audit_event_1 INCLUDING DEFAULTS)
            PARTITION BY RANGE (id);
        ALTER TABLE consentful_audit_event
            ADD CONSTRAINT consentful_audit_event_pkey PRIMARY KEY (id);
        -- A part has the row triggers of the whole, and a TRUNCATE trigger of its own.
        FOR one IN SELECT tgname FROM pg_trigger
                   WHERE tgrelid = closing AND NOT tgisinternal AND tgtype & 1 = 1 LOOP
            EXECUTE format('DROP TRIGGER %I ON consentful_audit_event_1', one.tgname);
        END LOOP;
        FOR one IN SELECT definition FROM unnest(indexes || triggers) AS definition LOOP
            EXECUTE one.definition;
        END LOOP;
        PERFORM consentful_isolate('consentful_audit_event');
        FOR one IN SELECT grantee::regrole AS role, privilege_type FROM pg_class, aclexplode(relacl)
                   WHERE oid = closing AND grantee NOT IN (0, relowner) LOOP
            EXECUTE format('GRANT %s ON consentful_audit_event TO %s', one.privilege_type, one.role);
            EXECUTE format('REVOKE %s ON consentful_audit_event_1 FROM %s', one.privilege_type, one.role);
        END LOOP;
        -- A row's type goes with its table: functions that take or hold one are made anew.
        FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
                   WHERE 'consentful_audit_event_1'::regtype = ANY (proargtypes) LOOP
            EXECUTE format('DROP FUNCTION %s', one.name);
        END LOOP;
        FOR one IN SELECT definition FROM unnest(functions) AS definition LOOP
            EXECUTE one.definition;
        END LOOP;
    ELSE
        EXECUTE format('ALTER TABLE consentful_audit_event DETACH PARTITION %s', closing);
    END IF;
    EXECUTE format('ALTER TABLE consentful_audit_event ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
                   closing, lowest, bound);
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT consentful_event_bounds', closing);
    next_name := 'consentful_audit_event_' || substring(closing::text FROM '\d+$')::integer + 1;
    EXECUTE format('CREATE TABLE %I PARTITION OF consentful_audit_event FOR VALUES FROM (%s) TO (MAXVALUE)',
                   next_name, bound);
    PERFORM consentful_isolate(next_name::regclass);
    EXECUTE format('CREATE TRIGGER consentful_insert_only_all BEFORE TRUNCATE ON %I FOR EACH STATEMENT
                    EXECUTE FUNCTION consentful_refuse(''The trail is insert-only.'')', next_name);
    RETURN next_name;
END
$$;

-- Drop the oldest part with its links, if every event in it is covered by its tenant's cut; returns
-- how many events went, and NULL where nothing could.
CREATE FUNCTION consentful_drop_part() RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    oldest regclass;
    tenant bigint;
    is_needed boolean;
    dropped bigint;
BEGIN
    SELECT inhrelid INTO oldest FROM pg_inherits
    WHERE inhparent = 'consentful_audit_event'::regclass
    ORDER BY CASE consentful_first_of_part(inhrelid) WHEN 'MINVALUE' THEN NULL
             ELSE trim('''' FROM consentful_first_of_part(inhrelid))::bigint END NULLS FIRST LIMIT 1;
    IF oldest IS NULL OR oldest = consentful_open_part() THEN
        RETURN NULL;
    END IF;
    -- As for every deletion: whoever reads a trail just now would find gone what is still to come.
    FOR tenant IN EXECUTE format('SELECT DISTINCT tenant_id FROM %s ORDER BY tenant_id', oldest) LOOP
        PERFORM pg_advisory_xact_lock(hashtextextended('consentful-retention:' || tenant, 0));
    END LOOP;
    EXECUTE format('SELECT EXISTS (
        SELECT FROM %s AS event
        LEFT JOIN consentful_audit_seal AS link
            ON link.event_id = event.id AND link.tenant_id = event.tenant_id
        LEFT JOIN (SELECT tenant_id, max(sequence) AS sequence FROM consentful_audit_cut
                   GROUP BY tenant_id) AS cut ON cut.tenant_id = event.tenant_id
        WHERE (link.sequence <= cut.sequence) IS NOT TRUE)', oldest) INTO is_needed;
    IF is_needed THEN
        RETURN NULL;
    END IF;
    EXECUTE format('DELETE FROM consentful_audit_seal AS link USING %s AS event
        WHERE link.event_id = event.id AND link.tenant_id = event.tenant_id', oldest);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    EXECUTE format('DROP TABLE %s', oldest);
    RETURN dropped;
END
$$;

REVOKE EXECUTE ON FUNCTION consentful_bound_part(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_split_part(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION consentful_drop_part() FROM PUBLIC;
