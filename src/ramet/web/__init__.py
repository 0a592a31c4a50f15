"""The ASGI edge in front of a host, and the server that `ramet serve` runs it in."""
