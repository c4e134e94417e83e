"""The API server over HTTP: an ASGI application on the store, its runner, and a transport without sockets."""
