-- The clock, and what a transaction has announced about itself.
-- Every function here is called by the apps above; none of them knows those apps.

-- The one clock of the service: after a lock was waited for, now() and statement_timestamp()
-- lie in the past. Tests replace this function, as owner, to freeze time.
CREATE FUNCTION consentful_now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;

CREATE FUNCTION consentful_refuse_unannounced() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
    RAISE EXCEPTION 'no tenant was announced to this transaction'
        USING ERRCODE = 'CF002', HINT = 'Enter a unit of work (tenants.units) first.';
END
$$;

-- The tenant this transaction works for. An error instead of NULL: a policy that silently
-- showed no rows would hide a forgotten unit of work. Tenant 0 stands for the installation.
-- One expression in SQL, which a plan takes into itself: called as a function, or as a subquery of
-- each policy, it cost every statement of the hot path more than the comparison (measured). Its
-- names are bound when it is made: a text would be read with the search path of whoever asks.
CREATE FUNCTION consentful_tenant() RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
    nullif(current_setting('consentful.tenant', true), ''), consentful_refuse_unannounced())::bigint;

-- Hooks that the apps above replace, so that an event can carry readable names although
-- this app knows ids only.
CREATE FUNCTION consentful_subject_name(tenant bigint, subject bigint) RETURNS text
LANGUAGE sql STABLE AS $$ SELECT NULL::text $$;

CREATE FUNCTION consentful_purpose_slug(tenant bigint, purpose bigint) RETURNS text
LANGUAGE sql STABLE AS $$ SELECT NULL::text $$;

-- Keys of advisory locks: prefixed, since hosts and job queues share the key space.
CREATE FUNCTION consentful_fence_key(tenant bigint, subject text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT hashtextextended('consentful:' || tenant || ':' || subject, 0) $$;

-- Announce who works for which tenant, and fence the persons concerned, in one round trip.
-- Must be a statement of its own, before any read that decides: under READ COMMITTED the next
-- statement then sees everything that was committed before the lock was granted.
CREATE FUNCTION consentful_enter(
    tenant bigint, context text, subjects text[] DEFAULT '{}', exclusive boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    fence bigint;
    person text;
    known bigint;
    said text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the consent fence needs READ COMMITTED, not %',
            current_setting('transaction_isolation')
            USING ERRCODE = 'CF001',
                  HINT = 'A snapshot taken before the lock lets a write pass a withdrawal.';
    END IF;
    -- Assigned, since that is evaluated in place, where PERFORM runs a query.
    said := set_config('consentful.tenant', tenant::text, true);
    said := set_config('consentful.context', context, true);
    said := set_config('lock_timeout', '3s', true);
    -- Everyone takes several fences in the order of their keys, so nobody waits in a circle.
    IF cardinality(subjects) > 1 THEN
        subjects := ARRAY(SELECT min(name) FROM unnest(subjects) AS name
                          GROUP BY consentful_fence_key(tenant, name)
                          ORDER BY consentful_fence_key(tenant, name));
    END IF;
    FOREACH person IN ARRAY subjects
    LOOP
        fence := consentful_fence_key(tenant, person);
        CONTINUE WHEN exclusive AND pg_try_advisory_xact_lock(fence);
        CONTINUE WHEN NOT exclusive AND pg_try_advisory_xact_lock_shared(fence);
        -- Somebody is in the way. Should it be an erasure, what waited for it must not bring back
        -- whom it forgot: the person's row is asked for before the wait and after it.
        known := consentful_subject_id(tenant, person);
        IF exclusive THEN
            PERFORM pg_advisory_xact_lock(fence);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(fence);
        END IF;
        IF known IS NOT NULL AND consentful_subject_id(tenant, person) IS DISTINCT FROM known THEN
            RAISE EXCEPTION 'the person was forgotten meanwhile' USING ERRCODE = 'CF003';
        END IF;
    END LOOP;
END
$$;
