"""People rate the deliverable against the human reference; campaigns bring what they say."""
