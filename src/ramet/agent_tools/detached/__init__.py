"""Runs that a parent lets go of: terms, following, the tick, deliveries and notices."""
