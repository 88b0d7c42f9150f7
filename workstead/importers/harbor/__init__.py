"""Task directories of Harbor and Terminal-Bench: an instruction, an image to build, a verifier and a solution."""
