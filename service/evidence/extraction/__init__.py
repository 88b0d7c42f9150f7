"""What a deliverable says, as text and pictures: made in a room, from the sealed deliverable."""
