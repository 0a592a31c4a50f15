"""How agents reach each other inside one process: the ports that an instance is given."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.agent.agent import Agent
from ramet.core.current import current_agent
from ramet.core.fence import Fence
from ramet.core.paths import AgentPath
from ramet.core.ports import Call
from ramet.core.tail import Tail
from ramet.errors import SubAgentNotFound
from ramet.host.deletion import Deletion
from ramet.host.instance import Instance
from ramet.host.instances import Instances

_NOBODY = Fence("the framework")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCaller:
    """Calls other agents in the name of one instance, or of code outside any (`path` None)."""

    instances: Instances
    path: AgentPath | None
    fence: Fence

    async def call(self, target: AgentPath, call: Call) -> object:
        """Run a method of the agent at `target`; see `core.ports.Caller`."""
        self.fence.check()
        by_value = self.path is None or target.root != self.path.root
        instance = await self.instances.opened(target, asker=self._asker())
        self.fence.check()
        work = instance.runtime.calls.invoke(call, by_value=by_value)
        result = await self.instances.run(instance, work, name=call.method, fence=self.fence)
        if by_value:
            await released(instance)
        return result

    async def stream(self, target: AgentPath, call: Call) -> AsyncIterator[object]:
        """Iterate over what a method of the agent at `target` gives; see `core.ports.Caller`."""
        self.fence.check()
        instance = await self.instances.opened(target, asker=self._asker())
        self.fence.check()
        opening = instance.runtime.calls.open_stream(call)
        with instance.hold(f"{call.method} is being read"):
            items = await self.instances.run(instance, opening, name=call.method, fence=self.fence)
            tail = items if isinstance(items, Tail) else _pumped(instance, items, call.method)
            forget = instance.fence.on_down(lambda: tail.end(instance.fence.error()))
            try:
                async for item in tail:
                    yield item
            finally:
                forget()
                await tail.aclose()

    def _asker(self) -> AgentPath | None:
        """Whose code calls: also where it calls through a stub of the app."""
        found = current_agent() if self.path is None else None
        return found.path if isinstance(found, Agent) else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLifecycles:
    """Opens, stops and removes agents in the name of one instance."""

    instances: Instances
    deletion: Deletion
    path: AgentPath
    fence: Fence

    async def open(self, target: AgentPath) -> None:
        """Open the agent at `target` with everything above it."""
        self.fence.check()
        await self.instances.opened(target, asker=self.path)
        self.fence.check()

    def abort(self, target: AgentPath, reason: str) -> None:
        """Stop the instances at and below `target`; what they stored stays."""
        self.fence.check()
        self.instances.end(target, reason, close_sockets=f"Aborted: {reason}")

    async def delete(self, target: AgentPath) -> None:
        """Stop the agents at and below `target` and remove what they stored."""
        self.fence.check()
        self.deletion.delete(target)


async def dispatch_internal(
    instances: Instances, target: AgentPath, *, handler: str, arguments: tuple[object, ...]
) -> object:
    """Open a sub-agent and run one of its internal handlers, if its parents still know it.

    Raises:
        SubAgentNotFound: A parent on the way does not know it any more; nothing was opened.
    """
    for path in target.lineage():
        if path.parent is None:
            continue
        above = await instances.opened(path.parent)
        if not above.runtime.registry.has(path.leaf.class_name, path.leaf.name):
            raise SubAgentNotFound(f"{path} is not known to its parent")
    instance = await instances.opened(target)
    work = instance.runtime.run_internal(handler, arguments)
    return await instances.run(instance, work, name=handler, fence=_NOBODY)


async def released(instance: Instance) -> None:
    """Wait until what the instance has committed so far may be seen outside."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def open_gate() -> None:
        if not gate.done():
            gate.set_result(None)

    forget = instance.fence.on_down(open_gate)
    instance.exit.release(open_gate)
    try:
        await gate
    finally:
        forget()
    instance.fence.check()


def _pumped(instance: Instance, items: AsyncIterator[object], name: str) -> Tail[object]:
    """Iterate over a user's own iterator as a task of its agent."""
    tail: Tail[object] = Tail(on_detach=lambda: task.cancel())
    task = instance.tasks.run(instance.runtime.calls.pump(items, tail), name=name)
    return tail
