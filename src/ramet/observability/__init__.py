"""Events of what agents do, for whoever subscribes."""

from ramet.observability.channels import CHANNELS, Event, subscribe

__all__ = ["CHANNELS", "Event", "subscribe"]
