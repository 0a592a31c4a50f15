"""The one JSON value that an agent shares with its clients."""
