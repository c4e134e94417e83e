"""The fields of the built-in kinds: names, types, merge keys and short descriptions, read from `types/`."""
