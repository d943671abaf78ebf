"""Building blocks of reports: Markdown and HTML of texts, tables, plots and packed parts."""
