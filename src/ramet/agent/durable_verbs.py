"""The methods of `Agent` for what outlives the process: schedules, the queue, fibers, retries."""

from ramet.agent.durable import Durable
from ramet.fibers.verbs import FiberVerbs
from ramet.queue.verbs import QueueVerbs
from ramet.schedules.retries import RetryVerbs
from ramet.schedules.verbs import ScheduleVerbs


class DurableVerbs(ScheduleVerbs, QueueVerbs, FiberVerbs, RetryVerbs):
    """What an agent can do later, in the background and again."""

    def _bind_durable(self, durable: Durable) -> None:
        """Take the features of this instance."""
        self._ramet_schedules = durable.schedules
        self._ramet_queue = durable.queue
        self._ramet_fibers = durable.fibers
        self._ramet_retries = durable.retries
