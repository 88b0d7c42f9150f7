"""A provider that follows a script: a real HTTP server for tests, the demo and authors of scaffolds."""
