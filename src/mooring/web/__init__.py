"""The pages of `mooring ui`, in the browser (extra `ui`). They ask a `Source`, and nothing else."""
