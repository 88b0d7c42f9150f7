"""Demo tasks with real files, the program that solves them, and the script that makes the files."""
