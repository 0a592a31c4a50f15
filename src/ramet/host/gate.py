"""Asks every agent on the way to a sub-agent whether a client may pass (D19)."""

from ramet.core.fence import Fence
from ramet.core.http import Request, Response, Target
from ramet.core.paths import AgentPath
from ramet.host.classes import ClassTable
from ramet.host.instances import Instances


class Gate:
    """The access check of sub-agents, from the root down."""

    def __init__(self, instances: Instances, classes: ClassTable) -> None:
        self._instances = instances
        self._classes = classes
        self._fence = Fence("the access gate")

    async def admit(self, path: AgentPath, request: Request) -> Response | Request:
        """Run the check at every parent on the path; a response refuses.

        No agent below a refusal is opened or made. One that is let through is known to its parent
        from then on, as if the parent had made it (SA-008).
        """
        for target in path.lineage():
            if target.parent is None:
                continue
            verdict = await self._ask(target.parent, target, request)
            if isinstance(verdict, Response):
                return verdict
            request = verdict
        return request

    async def _ask(
        self, parent: AgentPath, target: AgentPath, request: Request
    ) -> Response | Request:
        instance = await self._instances.opened(parent)
        cls = self._classes.class_of(target.leaf.class_name)
        described = Target(cls=cls, name=target.leaf.name, path=target)
        asking = instance.runtime.admit_sub_agent(request, described)
        verdict = await self._instances.run(
            instance, asking, name="on_before_sub_agent", fence=self._fence
        )
        if isinstance(verdict, Response):
            return verdict
        registry, leaf = instance.runtime.registry, target.leaf
        if not registry.has(leaf.class_name, leaf.name):
            registry.add(leaf.class_name, leaf.name)
        return verdict or request
