-- Whether an agent was given a purpose, by itself or through a group. Names in braces stand for the
-- host's user table; they are filled in after every migration.
CREATE OR REPLACE FUNCTION consentful_serves(tenant bigint, agent text, purpose bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM consentful_purpose_user_permission g
                   JOIN auth_permission p ON p.id = g.permission_id
                   WHERE g.tenant_id = tenant AND g.purpose_id = purpose
                     AND g.user_id = agent::{pk_type} AND p.codename = 'serve_purpose')
        OR EXISTS (SELECT FROM consentful_purpose_group_permission g
                   JOIN auth_permission p ON p.id = g.permission_id
                   JOIN {user_groups} m ON m.group_id = g.group_id
                   WHERE g.tenant_id = tenant AND g.purpose_id = purpose
                     AND m.{user_fk} = agent::{pk_type} AND p.codename = 'serve_purpose')
$$;
