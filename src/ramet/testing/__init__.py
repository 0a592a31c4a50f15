"""Test kit: a host without sockets, a manual clock, scripted models and children."""

from ramet.testing.client import TestClient
from ramet.testing.harness import Harness
from ramet.testing.manual_clock import ManualClock

__all__ = ["Harness", "ManualClock", "TestClient"]
