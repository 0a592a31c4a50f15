"""Runs of other agents as tools: registry, dispatch, observation, progress, replay, retention."""
