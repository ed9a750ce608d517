-- Who is asking, in one query: token or signed-in user, tenant, roles, own subject.
-- Names in braces stand for the host's user table; they are filled in after every migration.
-- No row: no such credential. A row without tenant: a tenant that does not exist or in which
-- the caller has no role; the two look the same.
CREATE OR REPLACE FUNCTION consentful_caller(credential text, signed_in text, tenant text)
RETURNS TABLE (
    user_id text, username text, tenant_id bigint, slug text, roles text[], subject text,
    on_behalf_of text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    who record;
    place record;
    codenames text[];
BEGIN
    IF credential IS NOT NULL THEN
        SELECT u.{pk} AS pk, u.{username} AS username, t.tenant_id,
               t.on_behalf_of::text AS on_behalf_of INTO who
        FROM consentful_token t JOIN {users} u ON u.{pk} = t.user_id
        WHERE t.digest = credential AND {is_active} AND t.revoked_at IS NULL
          AND t.expires_at > consentful_now();
    ELSE
        SELECT u.{pk} AS pk, u.{username} AS username, NULL::bigint AS tenant_id,
               NULL::text AS on_behalf_of INTO who
        FROM {users} u WHERE u.{pk}::text = signed_in AND {is_active};
    END IF;
    IF who.pk IS NULL THEN
        RETURN;
    END IF;
    SELECT t.id, t.slug INTO place FROM consentful_tenant t
    WHERE t.slug = tenant AND (who.tenant_id IS NULL OR who.tenant_id = t.id);
    SELECT array_agg(DISTINCT substr(p.codename, 8)) INTO codenames
    FROM auth_permission p
    WHERE p.codename LIKE 'act\_as\_%'
      AND (EXISTS (SELECT FROM consentful_tenant_user_permission r
                   WHERE r.tenant_id = place.id AND r.user_id = who.pk AND r.permission_id = p.id)
        OR EXISTS (SELECT FROM consentful_tenant_group_permission r
                   JOIN {user_groups} g ON g.group_id = r.group_id
                   WHERE r.tenant_id = place.id AND g.{user_fk} = who.pk
                     AND r.permission_id = p.id));
    -- A token on behalf of a person is an agent's: it is worth nothing once that role is gone.
    IF who.on_behalf_of IS NOT NULL AND NOT 'agent' = ANY (coalesce(codenames, '{{}}')) THEN
        codenames := NULL;
    END IF;
    RETURN QUERY SELECT who.pk::text, who.username::text,
        CASE WHEN codenames IS NOT NULL THEN place.id END,
        CASE WHEN codenames IS NOT NULL THEN place.slug::text END,
        coalesce(codenames, '{{}}'),
        coalesce(
            who.on_behalf_of::text,
            (SELECT s.external_id::text FROM consentful_subject s
             WHERE s.tenant_id = place.id AND s.user_id = who.pk),
            -- Who was forgotten under the login's own name can come back under it.
            (SELECT who.username::text FROM consentful_tombstone t
             WHERE t.tenant_id = place.id AND t.user_id = who.pk LIMIT 1)),
        who.on_behalf_of::text;
END
$$;
