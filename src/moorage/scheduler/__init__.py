"""The scheduling cycle, the binding cycle, and the assembly of a scheduler from configuration and ports."""
