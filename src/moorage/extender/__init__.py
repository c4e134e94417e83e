"""Extenders over HTTP: what is sent to them, what their answers may say, and the connection to each."""
