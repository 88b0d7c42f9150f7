"""Campaigns: drawing the items, handing them to raters, deciding by what they say, and what the lead sees of it."""
