"""The program that runs inside every sandbox. It is copied, never imported, by the host's side."""
