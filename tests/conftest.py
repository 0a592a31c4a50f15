"""What all tests share: how Hypothesis runs."""

from hypothesis import settings

# The machine that runs the checks is small and shared: a slow example is no failure. The same
# examples each time, so that a red run is red again; look further with `--hypothesis-profile=hunt`.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("hunt", deadline=None, max_examples=2000)
settings.load_profile("steady")
