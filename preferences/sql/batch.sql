-- Many operations in one round trip and one transaction, whose fences are held already: each is the
-- call of the function for one, in the order given. A refusal has written nothing, so those that
-- follow still run and can be told of; whoever asked decides what becomes of the transaction.
--   operations  a JSON array of objects: `verb` (get | put | delete) and the function's arguments
CREATE FUNCTION consentful_batch(tenant bigint, context text, operations json)
RETURNS SETOF consentful_answer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    one record;
    answer consentful_answer;
BEGIN
    FOR one IN SELECT * FROM json_to_recordset(operations) AS operation (
        verb text, scope text, kind text, subject text, key text, agent text, writer text,
        source text, actor text, assumed text, is_checked boolean, mode text, revisions text[],
        value text, tags text[], metadata text, provenance text, has_deadline boolean, ttl bigint,
        deadline timestamptz)
    LOOP
        IF one.verb = 'get' THEN
            answer := consentful_preference_get(
                tenant, one.scope, one.kind, one.subject, one.key, one.agent);
        ELSIF one.verb = 'put' THEN
            answer := consentful_preference_put(
                tenant, context, one.scope, one.kind, one.subject, one.key, one.agent,
                one.writer, one.source, one.actor, one.assumed, one.is_checked, one.mode,
                one.revisions, one.value, one.tags, one.metadata, one.provenance,
                one.has_deadline, one.ttl, one.deadline);
        ELSE
            answer := consentful_preference_delete(
                tenant, context, one.scope, one.kind, one.subject, one.key, one.agent,
                one.writer, one.revisions, one.is_checked);
        END IF;
        RETURN NEXT answer;
    END LOOP;
END
$$;
