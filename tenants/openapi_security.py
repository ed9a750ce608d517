"""The two ways to say who asks, for a project's SPECTACULAR_SETTINGS. Imports nothing: settings do it."""

#: For `APPEND_COMPONENTS`.
SECURITY = {
    "securitySchemes": {
        "bearer": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
    }
}
