"""PayWorthy: postings of real jobs, with what a solver delivered and what only the client knew."""
