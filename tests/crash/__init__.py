"""Kills a real server at any moment, and compares what clients saw with what they get then."""
