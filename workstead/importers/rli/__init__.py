"""Remote Labor Index: a folder per project, with a brief, inputs and what a professional delivered."""
