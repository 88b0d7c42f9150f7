"""Campaigns of raters: what is rated, who rates, and what was said."""
