"""Chat agents: turns, transcript, chunk log, resume, and the work for parents."""
