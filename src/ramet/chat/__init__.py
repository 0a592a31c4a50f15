"""Chat agents: turns, transcript, chunk log, resume, and chat agents as children of other agents."""
