"""Takes agents out of memory that nobody has used for a while, or that are too many (D14)."""

from ramet.core.clock import Clock, Timer
from ramet.core.options import HostOptions
from ramet.host.instance import Instance
from ramet.host.instances import Instances

LOOKS_PER_TIMEOUT = 4
_REASON = "it was idle"


class IdleEviction:
    """Looks at the open agents now and then; what is busy stays."""

    def __init__(self, instances: Instances, clock: Clock, options: HostOptions) -> None:
        self._instances = instances
        self._clock = clock
        self._timeout = options.idle_timeout
        self._most_open = options.max_open_agents
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to look."""
        if 0 < self._timeout < float("inf"):
            self._timer = self._clock.call_later(self._timeout / LOOKS_PER_TIMEOUT, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def make_room(self) -> None:
        """Put the longest unused agents away when more are open than may be."""
        surplus = len(self._instances) - self._most_open
        if surplus <= 0:
            return
        for instance in sorted(self._instances, key=lambda each: each.used_at):
            if surplus <= 0:
                return
            if self._may_go(instance):
                self._evict(instance)
                surplus -= 1

    def _look(self) -> None:
        now = self._clock.monotonic()
        for instance in sorted(self._instances, key=lambda each: -len(each.path.steps)):
            if not self._may_go(instance):
                instance.used_at = now
            elif now - instance.used_at >= self._timeout:
                self._evict(instance)
        self.start()

    def _may_go(self, instance: Instance) -> bool:
        return self._instances.busy(instance) is None

    def _evict(self, instance: Instance) -> None:
        self._instances.end(instance.path, _REASON, close_sockets=None)
