"""Questions about one pod on one state of a cluster: who refuses it where, how nodes score, what helps.

The questions go to an engine in memory that nothing else uses; nothing is written to a cluster. Plugins,
runtime and chooser are those of `moorage run`, so the answers are the scheduler's own."""
