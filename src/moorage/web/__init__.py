"""The pages of `moorage ui`, in the browser (extra `ui`). They ask a `Source`, and nothing else."""
