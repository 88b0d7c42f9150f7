"""JobBench: a folder per task, with reference files, rubrics and a card that tells the answers."""
