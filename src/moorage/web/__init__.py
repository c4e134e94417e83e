"""The web UI, `moorage ui` (extra `ui`): pages that ask a source and nothing else."""
