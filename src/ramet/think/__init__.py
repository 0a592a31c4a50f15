"""The opinionated chat agent: a model from pydantic-ai, driven by a step loop of our own."""
