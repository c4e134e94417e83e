"""The endpoints of a scheduler: health, metrics and `/moorage/v1`, with their client."""
