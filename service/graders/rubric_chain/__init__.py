"""Rubrics of criteria, judged by models: a rubric's weight is earned where every one of its criteria passes (JobBench)."""
