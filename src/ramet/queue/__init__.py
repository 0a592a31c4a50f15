"""Methods called soon, one after another, each at least once."""
