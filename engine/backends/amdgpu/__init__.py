"""AMD GPUs, for inspection: code objects for named processors, which nothing here launches."""
