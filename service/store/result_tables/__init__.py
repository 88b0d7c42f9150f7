"""Result tables as rows (NEEDS B23): one statement each, read piece by piece. Columns are those of the data dictionary."""
