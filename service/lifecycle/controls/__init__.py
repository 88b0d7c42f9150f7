"""Altered-work controls: what they are made of, their runs, and the figures that come of them."""
