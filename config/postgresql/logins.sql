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
