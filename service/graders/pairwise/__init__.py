"""The deliverable beside the reference (what a person made of the same task): which one a judge prefers, seen in both orders."""
