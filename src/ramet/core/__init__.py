"""Small parts that everything stands on: paths, ids, the clock, JSON, options, ports."""
