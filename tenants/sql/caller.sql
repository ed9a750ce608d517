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
#variable_conflict use_column
DECLARE
    who record;
    codenames text[];
BEGIN
    IF credential IS NOT NULL THEN
        SELECT u.{pk} AS pk, u.{username} AS username, t.on_behalf_of::text AS on_behalf_of,
               place.id AS tenant_id, place.slug::text AS slug, s.external_id::text AS subject
        INTO who
        FROM consentful_token t
        JOIN {users} u ON u.{pk} = t.user_id
        LEFT JOIN consentful_tenant place
            ON place.slug = tenant AND (t.tenant_id IS NULL OR t.tenant_id = place.id)
        LEFT JOIN consentful_subject s ON s.tenant_id = place.id AND s.user_id = u.{pk}
        WHERE t.digest = credential AND {is_active} AND t.revoked_at IS NULL
          AND t.expires_at > consentful_now();
    ELSE
        SELECT u.{pk} AS pk, u.{username} AS username, NULL::text AS on_behalf_of,
               place.id AS tenant_id, place.slug::text AS slug, s.external_id::text AS subject
        INTO who
        FROM {users} u
        LEFT JOIN consentful_tenant place ON place.slug = tenant
        LEFT JOIN consentful_subject s ON s.tenant_id = place.id AND s.user_id = u.{pk}
        WHERE u.{pk}::text = signed_in AND {is_active};
    END IF;
    IF who.pk IS NULL THEN
        RETURN;
    END IF;
    -- From the few grants to their names, not from all names to whether they are granted.
    SELECT array_agg(DISTINCT substr(p.codename, 8)) INTO codenames
    FROM (
        SELECT r.permission_id FROM consentful_tenant_user_permission r
        WHERE r.tenant_id = who.tenant_id AND r.user_id = who.pk
        UNION ALL
        SELECT r.permission_id FROM {user_groups} g
        JOIN consentful_tenant_group_permission r
            ON r.tenant_id = who.tenant_id AND r.group_id = g.group_id
        WHERE g.{user_fk} = who.pk) AS granted
    JOIN auth_permission p ON p.id = granted.permission_id
    WHERE p.codename LIKE 'act\_as\_%';
    -- A token on behalf of a person is an agent's: it is worth nothing once that role is gone.
    IF who.on_behalf_of IS NOT NULL AND NOT 'agent' = ANY (coalesce(codenames, '{{}}')) THEN
        codenames := NULL;
    END IF;
    user_id := who.pk::text;
    username := who.username::text;
    IF codenames IS NOT NULL THEN
        tenant_id := who.tenant_id;
        slug := who.slug;
    END IF;
    roles := coalesce(codenames, '{{}}');
    -- Who was forgotten under the login's own name can come back under it.
    subject := coalesce(who.on_behalf_of, who.subject, CASE WHEN EXISTS (
        SELECT FROM consentful_tombstone t
        WHERE t.tenant_id = who.tenant_id AND t.user_id = who.pk) THEN who.username END);
    on_behalf_of := who.on_behalf_of;
    RETURN NEXT;
END
$$;
