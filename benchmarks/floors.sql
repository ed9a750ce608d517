-- What a careful engineer would build by hand for one product: plain tables with one index for
-- the address each, no policies, no triggers. Their statements are in floors.py.

CREATE TABLE floor_consent (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    subject text COLLATE "C" NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    state text NOT NULL,
    UNIQUE (tenant_id, subject, purpose)
);

CREATE TABLE floor_preference (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    consent_id bigint NOT NULL,
    value json NOT NULL,
    revision text NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (tenant_id, scope, key)
) WITH (fillfactor = 90);

CREATE TABLE floor_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    tenant_id bigint NOT NULL,
    action text NOT NULL,
    preference_id bigint NOT NULL,
    actor text NOT NULL,
    revision_before text,
    revision_after text
);
