"""The terminal studio. Paints `app.core.panels`; starts a worker; knows nothing of compilers."""
