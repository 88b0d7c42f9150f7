"""Any table of tasks: what its columns are called is said by a mapping."""
