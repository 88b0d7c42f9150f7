"""GDPval: a table of tasks with reference files, experts' deliverables and rubrics."""
