"""The program that runs in the room. Standard library, and what Debian's packages of the image bring; no service around it."""
