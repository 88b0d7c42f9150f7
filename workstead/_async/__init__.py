"""The client's parts, asynchronous. ``workstead/_sync`` is generated from here by ``tools/make_sync_client.py``."""
