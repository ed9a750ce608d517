-- The boundary in the database: names for the trail, and the second wall.
-- Look-ups are PL/pgSQL, whose plans a session keeps: one in SQL is planned anew with each call.

CREATE OR REPLACE FUNCTION consentful_subject_name(tenant bigint, subject bigint) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT s.external_id FROM consentful_subject s WHERE s.tenant_id = tenant AND s.id = subject);
END
$$;

CREATE OR REPLACE FUNCTION consentful_subject_id(tenant bigint, subject text) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT s.id FROM consentful_subject s WHERE s.tenant_id = tenant AND s.external_id = subject);
END
$$;

-- A person's row, made on the first write about them. ON CONFLICT waits for a twin's commit.
CREATE FUNCTION consentful_ensure_subject(tenant bigint, subject text) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    found bigint := consentful_subject_id(tenant, subject);
BEGIN
    IF found IS NULL THEN
        INSERT INTO consentful_subject (tenant_id, external_id) VALUES (tenant, subject)
        ON CONFLICT (tenant_id, external_id) DO NOTHING RETURNING id INTO found;
        found := coalesce(found, consentful_subject_id(tenant, subject));
    END IF;
    RETURN found;
END
$$;

-- The second wall: rows of the announced tenant alone, for reading and for writing. Not FORCE:
-- that binds only the owner, whose migrations and definer functions must see all rows.
CREATE FUNCTION consentful_isolate(target regclass) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY consentful_tenant ON %s
        USING (tenant_id = consentful_tenant())
        WITH CHECK (tenant_id = consentful_tenant())', target);
END
$$;
REVOKE EXECUTE ON FUNCTION consentful_isolate(regclass) FROM PUBLIC;

-- Foreign keys ignore row-level security: those between tenant tables name the tenant too.
ALTER TABLE consentful_subject ADD CONSTRAINT consentful_subject_in_tenant UNIQUE (tenant_id, id);
ALTER TABLE consentful_idempotency_record ADD CONSTRAINT consentful_idempotency_subject
    FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id)
    ON DELETE CASCADE;

SELECT consentful_attach('consentful_tenant', 'tenant');
SELECT consentful_attach('consentful_subject', 'subject');
SELECT consentful_attach('consentful_tenant_user_permission', 'role');
SELECT consentful_attach('consentful_tenant_group_permission', 'group_role');
SELECT consentful_attach('consentful_token', 'token');

SELECT consentful_isolate('consentful_audit_event');
SELECT consentful_isolate('consentful_audit_seal');
SELECT consentful_isolate('consentful_audit_head');
SELECT consentful_isolate('consentful_idempotency_record');
