"""Record and replay (CONTRACTS 6): a run's requests and answers, and answering a later run from them."""
