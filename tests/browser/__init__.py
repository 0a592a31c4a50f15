"""Real npm clients against a real server."""
