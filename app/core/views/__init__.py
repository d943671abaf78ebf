"""Lines and tables of parts of a record: what panels, the matrix and reports are made of. Pure."""
