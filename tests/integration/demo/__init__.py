"""The demo's agents over real processes."""
