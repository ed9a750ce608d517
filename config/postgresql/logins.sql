-- The two logins of the service. Run as superuser; running it again changes nothing.
-- Give both a password where they log in over a network (\password in psql), and make the
-- database with: CREATE DATABASE consentful OWNER consentful_owner ENCODING 'UTF8' TEMPLATE template0;

DO $$
BEGIN
    -- The login that migrates, of DATABASE_OWNER_URL: it owns the tables.
    IF to_regrole('consentful_owner') IS NULL THEN
        CREATE ROLE consentful_owner LOGIN;
    END IF;
    -- The login that serves, of DATABASE_URL: it owns nothing, so row-level security holds
    -- for it, and migrations grant it what it needs.
    IF to_regrole('consentful') IS NULL THEN
        CREATE ROLE consentful LOGIN;
    END IF;
END
$$;

-- Limits sit on the role: a pooler refuses startup options, and a session's leak through it.
ALTER ROLE consentful SET lock_timeout = '3s';
ALTER ROLE consentful SET statement_timeout = '30s';
ALTER ROLE consentful SET idle_in_transaction_session_timeout = '60s';

-- Values are part of the statements, so neither these nor an error's words may reach the server's
-- log: "invalid input syntax for type integer: …" quotes one, DETAIL shows a row. What failed is
-- told to whoever sent it. Only a superuser may set this, which some hosted servers give to nobody.
DO $$
DECLARE
    login text;
    setting text;
BEGIN
    FOREACH login IN ARRAY ARRAY['consentful', 'consentful_owner'] LOOP
        FOREACH setting IN ARRAY ARRAY[
            'log_min_messages = log', 'log_min_error_statement = panic',
            'log_error_verbosity = terse', 'log_statement = none', 'log_duration = off',
            'log_min_duration_statement = -1', 'log_min_duration_sample = -1',
            'log_transaction_sample_rate = 0', 'log_parameter_max_length_on_error = 0'
        ] LOOP
            EXECUTE format('ALTER ROLE %I SET %s', login, setting);
        END LOOP;
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'The log of this server may show values. Set for the server as a whole:'
        ' log_min_error_statement = panic, log_error_verbosity = terse, log_statement = none,'
        ' log_min_duration_statement = -1.';
END
$$;
