"""Lines and tables of parts of a record, for panels, the matrix and reports. Pure."""
