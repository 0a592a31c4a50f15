"""The agents of the wire app, which real clients are run against."""
