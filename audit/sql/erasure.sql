-- Erasure: what can be read in an event may be blanked, together with the salt that proved it. The
-- chain covers the digests, so it verifies before and after, and says no more whom it was about.

-- BEFORE UPDATE OR DELETE on events: what a cut covers may be deleted; the readable columns of a
-- target or of an actor may be blanked, all of them at once. Nothing else, for nobody.
CREATE OR REPLACE FUNCTION consentful_keep_event() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    blank consentful_audit_event;
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT FROM consentful_audit_seal AS link JOIN consentful_audit_cut AS cut
            ON cut.tenant_id = link.tenant_id AND link.sequence <= cut.sequence
        WHERE link.event_id = OLD.id AND link.tenant_id = OLD.tenant_id
    ) THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        blank := OLD;
        IF NEW.target_salt IS NULL THEN
            blank.subject := NULL;
            blank.scope := NULL;
            blank.key := NULL;
            blank.on_behalf_of := NULL;
            blank.reason := NULL;
            blank.request_id := NULL;
            blank.target_salt := NULL;
        END IF;
        IF NEW.actor_salt IS NULL THEN
            blank.actor := NULL;
            blank.actor_salt := NULL;
        END IF;
        -- *= compares the stored bytes.
        IF NEW *= blank THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'The trail is insert-only.';
END
$$;

-- Blank what names a person in one tenant's trail; returns how many targets and actors.
--   subject   the name under which events speak of the person
--   keys      NULL: every event about the person, and what others did on its behalf; else only
--             events about these keys
--   purposes  the same by purpose, for events about records
--   logins    user ids whose events lose their actor's name
--   until     NULL: whenever it was; else the events of what was written later stay
-- Leaves an event of its own: whoever blanks the trail does not do so unseen.
CREATE FUNCTION consentful_blank_trail(
    tenant bigint, subject_id bigint, subject text, keys text[], purposes text[], logins text[],
    until timestamptz, OUT targets bigint, OUT actors bigint
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF tenant <> consentful_tenant() THEN
        RAISE EXCEPTION 'this transaction works for another tenant'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    WITH blanked AS (
        UPDATE consentful_audit_event AS e
        SET subject = NULL, scope = NULL, key = NULL, on_behalf_of = NULL, reason = NULL,
            request_id = NULL, target_salt = NULL
        WHERE e.tenant_id = tenant AND e.subject = consentful_blank_trail.subject
          AND (keys IS NULL OR e.key = ANY (keys))
          AND (purposes IS NULL OR (e.key IS NOT NULL AND e.purpose = ANY (purposes)))
          AND (until IS NULL OR e.at <= until
               OR e.action NOT IN ('preference.created', 'preference.replaced'))
        RETURNING 1)
    SELECT count(*) INTO targets FROM blanked;
    actors := 0;
    IF keys IS NULL AND purposes IS NULL THEN
        -- What agents did on the person's behalf in places that are nobody's.
        WITH blanked AS (
            UPDATE consentful_audit_event AS e
            SET subject = NULL, scope = NULL, key = NULL, on_behalf_of = NULL, reason = NULL,
                request_id = NULL, target_salt = NULL
            WHERE e.tenant_id = tenant AND e.on_behalf_of = consentful_blank_trail.subject
            RETURNING 1)
        SELECT targets + count(*) INTO targets FROM blanked;
        WITH blanked AS (
            UPDATE consentful_audit_event AS e SET actor = NULL, actor_salt = NULL
            WHERE e.tenant_id = tenant AND e.actor_id = ANY (logins) AND e.actor_salt IS NOT NULL
            RETURNING 1)
        SELECT count(*) INTO actors FROM blanked;
    END IF;
    IF targets + actors > 0 THEN
        PERFORM consentful_append_event(
            tenant, 'trail.blanked', 'done', NULL, NULL, subject_id, NULL, NULL, NULL, NULL, '{}',
            NULL, NULL, NULL, nullif(current_setting('consentful.context', true), '')::json);
    END IF;
END
$$;
