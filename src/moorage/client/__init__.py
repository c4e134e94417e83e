"""The scheduler's side of the API server: informers that mirror it, and the recorder that writes events.

Everything here speaks to the server through the `ApiClient` port; how bytes travel is left to the transport.
"""
