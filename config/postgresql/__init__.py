"""Django's PostgreSQL backend with two logins and the embedded server."""
