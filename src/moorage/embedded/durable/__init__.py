"""The store on disk: one SQLite database in a directory, written by a thread, loaded whole at start.

`opening.open_data_dir` is the door. Objects live in memory; the database is what a restart begins from.
"""
