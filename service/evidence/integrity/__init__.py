"""Whether delivered files open: made in a room, from the sealed deliverable."""
