"""One machine's processes: the embedded PostgreSQL and the children of ``workstead serve``."""
