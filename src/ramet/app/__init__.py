"""`App`: one object that a web server can run."""
