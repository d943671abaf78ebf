"""The terminal studio. Paints `app.panels`; starts a worker; knows nothing of compilers."""
