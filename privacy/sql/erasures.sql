-- Foreign keys ignore row-level security: those between tenant tables name the tenant too.
ALTER TABLE consentful_erasure
    ADD CONSTRAINT consentful_erasure_in_tenant UNIQUE (tenant_id, id),
    ADD CONSTRAINT consentful_erasure_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id),
    ADD CONSTRAINT consentful_erasure_extent CHECK (
        is_whole = (key_digests IS NULL AND purposes IS NULL));
ALTER TABLE consentful_erasure_holder
    ADD CONSTRAINT consentful_erasure_holder_erasure
        FOREIGN KEY (tenant_id, erasure_id) REFERENCES consentful_erasure (tenant_id, id);

SELECT consentful_attach('consentful_erasure', 'erasure');
SELECT consentful_attach('consentful_erasure_holder', 'erasure_holder');
SELECT consentful_attach('consentful_reapplied', 'reapplied');
SELECT consentful_isolate('consentful_reapplied');
SELECT consentful_isolate('consentful_erasure');
SELECT consentful_isolate('consentful_erasure_holder');

-- Which of these the database does not know, whichever tenant they were of: erasures by their
-- reference, withdrawals as the id and the name of the ledger's entry, ``17:3f9a…``. It knew all of
-- them once: where one is absent, an older copy of the database was put in its place.
CREATE FUNCTION consentful_unknown(refs text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT ref FROM unnest(refs) AS ref
    WHERE NOT EXISTS (SELECT FROM consentful_erasure WHERE reference = ref)
      AND NOT EXISTS (SELECT FROM consentful_consent_entry
                      WHERE id = CASE WHEN ref ~ '^[0-9]+:' THEN split_part(ref, ':', 1)::bigint END
                        AND entry = split_part(ref, ':', 2))
      AND NOT EXISTS (SELECT FROM consentful_reapplied WHERE reference = ref)
$$;

-- The tenants that have erasures which are not finished; a job enters each of them by itself.
CREATE FUNCTION consentful_open_erasures() RETURNS TABLE (tenant bigint, reference text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT tenant_id, reference FROM consentful_erasure WHERE finished_at IS NULL ORDER BY id
$$;
