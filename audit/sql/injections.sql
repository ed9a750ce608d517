-- What went to a language model: one event for each stored version that it was shown.

-- One statement for all records of one call, which share its transaction and its request.
--   records  a JSON array of objects: `record_id`, `revision`, `subject`, `scope`, `key`, `purpose`
--
-- `record` stays empty: the events of a record are its versions, each following the one before,
-- and showing one makes none. Before and after are the same revision, since nothing changed.
CREATE FUNCTION consentful_record_injections(tenant bigint, context text, records json) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    shown record;
    written integer := 0;
BEGIN
    FOR shown IN SELECT * FROM json_to_recordset(records) AS one (
        record_id bigint, revision text, subject text, scope text, key text, purpose text)
    LOOP
        PERFORM consentful_append_event(
            tenant, 'context.injected', 'done', NULL, shown.record_id,
            consentful_subject_id(tenant, shown.subject), shown.subject, shown.scope, shown.key,
            shown.purpose, '{}', shown.revision, shown.revision, NULL, context::json);
        written := written + 1;
    END LOOP;
    RETURN written;
END
$$;

-- As before, but for events that are no version of a record: they keep none alive.
CREATE OR REPLACE FUNCTION consentful_uncovered(tenant bigint, upto bigint)
RETURNS TABLE (record text, record_id bigint)
LANGUAGE sql STABLE
AS $$
    SELECT event.record, event.record_id
    FROM consentful_audit_seal AS link JOIN consentful_audit_event AS event
        ON event.id = link.event_id AND event.tenant_id = link.tenant_id
    WHERE link.tenant_id = tenant AND link.sequence <= upto AND event.record IS NOT NULL
      AND event.revision_after IS NOT NULL
      AND NOT EXISTS (
        SELECT FROM consentful_audit_event AS later
        WHERE later.tenant_id = tenant AND later.record = event.record
          AND later.record_id = event.record_id AND later.id > event.id)
$$;
