-- Legal holds: a held record stays as it is, whoever asks, until the hold ends.

ALTER TABLE consentful_preference
    ADD CONSTRAINT consentful_preference_hold CHECK (
        (held_at IS NULL) = (hold_reason IS NULL) AND (held_until IS NULL OR held_at IS NOT NULL)
        AND (held_at IS NULL OR subject_id IS NOT NULL)
        AND held_until < '9999-12-31 00:00:00+00') NOT VALID;

-- Whether a hold lasts. Whoever deletes many rows at once skips those for which this is true.
CREATE FUNCTION consentful_is_held(held_at timestamptz, held_until timestamptz, moment timestamptz)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT held_at IS NOT NULL AND (held_until IS NULL OR held_until > moment) $$;

-- BEFORE UPDATE OR DELETE: of a row that has a hold, every way to change it ends here, plain SQL too.
-- The hold itself may be changed; and names: whoever is forgotten meanwhile leaves a pseudonym.
-- Without a WHEN, which is read and planned anew with every statement and costs more than a call.
CREATE FUNCTION consentful_keep_held() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    fresh consentful_preference;
BEGIN
    IF OLD.held_at IS NULL
       OR NOT consentful_is_held(OLD.held_at, OLD.held_until, consentful_now()) THEN
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        fresh := NEW;
        fresh.held_at := OLD.held_at;
        fresh.held_until := OLD.held_until;
        fresh.hold_reason := OLD.hold_reason;
        fresh.scope := OLD.scope;
        fresh.actor := OLD.actor;
        fresh.revision := OLD.revision;
        fresh.salt := OLD.salt;
        IF fresh *= OLD THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'a legal hold keeps this record as it is'
        USING ERRCODE = 'CF004', HINT = 'End the hold first.';
END
$$;
CREATE TRIGGER consentful_keep_held BEFORE UPDATE OR DELETE ON consentful_preference
    FOR EACH ROW EXECUTE FUNCTION consentful_keep_held();
