"""Freelance: postings with a price and tests, in the paper's shape (A, programs) and in the released one (B, answers)."""
