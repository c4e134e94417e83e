"""Questions about one pod on one state of a cluster: who refuses it where, how nodes score, what would help.

Asked of an engine in memory that belongs to whoever asks; nothing is written to a cluster. The same plugins,
runtime and chooser answer that `moorage run` uses, so the answers are the scheduler's own."""
