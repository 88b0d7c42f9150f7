"""What forecast sets and annotation sets have in common: models are asked one by one, whatever dies or is away meanwhile."""
