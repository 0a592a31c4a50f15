"""An application that mounts agents: `tests.integration.web.mounted:app`."""

from starlette.applications import Starlette
from starlette.routing import Mount

import ramet
from tests.integration.web.agents import Parent

inner = ramet.App(agents=[Parent])
app = Starlette(routes=[Mount("/ai", inner)], lifespan=inner.lifespan)
