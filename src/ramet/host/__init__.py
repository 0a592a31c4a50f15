"""Many agents in one process: addresses, instances, their tasks and their clients' sockets."""

from ramet.host.classes import ClassTable
from ramet.host.host import Host

__all__ = ["ClassTable", "Host"]
