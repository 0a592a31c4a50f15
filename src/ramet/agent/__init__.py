"""`Agent`, the façade that users subclass, and what composes its features."""
