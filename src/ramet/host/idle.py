"""Takes agents out of memory that nobody has used for a while, or that are too many (D14)."""

from collections import deque

from ramet.core.clock import Clock, Timer
from ramet.core.options import HostOptions
from ramet.host.instance import Instance
from ramet.host.instances import Instances
from ramet.host.memory import give_back

LOOKS_PER_TIMEOUT = 4
LOOKED_AT_ONCE = 500
EVICTED_AT_ONCE = 32
"""What one step of a look does at most, so that thousands of agents hold nobody up."""
ROOM_SHARE = 32
"""When room is needed, this part of all agents is put away at once."""
MANY = 64
"""After so many evictions memory is given back to the system."""
CROWDED_SECONDS = 1.0
"""After a search for room that found too little the next one waits so long."""
_REASON = "it was idle"


class IdleEviction:
    """Looks at the open agents now and then; what is busy stays."""

    def __init__(self, instances: Instances, clock: Clock, options: HostOptions) -> None:
        self._instances = instances
        self._clock = clock
        self._timeout = options.idle_timeout
        self._most_open = options.max_open_agents
        self._to_look_at: deque[Instance] = deque()
        self._gone = 0
        self._timer: Timer | None = None
        self._crowded: Timer | None = None

    def start(self, *, most_open: int) -> None:
        """Begin to look; no more than `most_open` agents can be open, whatever the options say."""
        self._most_open = min(self._most_open, most_open)
        self._look_later()

    def stop(self) -> None:
        """Look no more."""
        for timer in (self._timer, self._crowded):
            if timer is not None:
                timer.cancel()
        self._timer = self._crowded = None
        self._to_look_at.clear()

    def make_room(self) -> None:
        """Put the longest unused agents away when more are open than may be."""
        surplus = len(self._instances) - self._most_open
        if surplus <= 0 or self._crowded is not None:
            return
        surplus += self._most_open // ROOM_SHARE
        for instance in sorted(self._instances, key=lambda each: each.used_at):
            if surplus <= 0:
                return
            if self._may_go(instance):
                self._evict(instance)
                surplus -= 1
        if len(self._instances) > self._most_open:
            self._crowded = self._clock.call_later(CROWDED_SECONDS, self._look_for_room)

    def _look_for_room(self) -> None:
        self._crowded = None
        self.make_room()

    def _look_later(self) -> None:
        if 0 < self._timeout < float("inf"):
            self._timer = self._clock.call_later(self._timeout / LOOKS_PER_TIMEOUT, self._look)

    def _look(self) -> None:
        # The lowest first: a parent may go in the same look as the last of its sub-agents.
        lowest_first = sorted(self._instances, key=lambda each: -len(each.path.steps))
        self._to_look_at = deque(lowest_first)
        self._go_on()

    def _go_on(self) -> None:
        now = self._clock.monotonic()
        evicted = 0
        for _ in range(min(LOOKED_AT_ONCE, len(self._to_look_at))):
            instance = self._to_look_at.popleft()
            if not self._may_go(instance):
                instance.used_at = now
            elif now - instance.used_at >= self._timeout:
                self._evict(instance)
                evicted += 1
                if evicted == EVICTED_AT_ONCE:
                    break
        self._gone += evicted
        if self._to_look_at:
            self._timer = self._clock.call_later(0, self._go_on)
            return
        if self._gone >= MANY:
            self._gone = 0
            give_back()
        self._look_later()

    def _may_go(self, instance: Instance) -> bool:
        return not instance.fence.down and self._instances.busy(instance) is None

    def _evict(self, instance: Instance) -> None:
        self._instances.end(instance.path, _REASON, close_sockets=None)
