"""The opinionated chat agent: a model from pydantic-ai, driven by a step loop of our own."""

from ramet.think import from_thread

__all__ = ["from_thread"]
