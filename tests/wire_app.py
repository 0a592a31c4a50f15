"""The application that real clients are run against: `ramet serve tests.wire_app:app`."""

import ramet
from tests.wire.chat import ChatAgent
from tests.wire.counter import CounterAgent
from tests.wire.researchers import Researcher, ThinkResearcher
from tests.wire.think import ThinkAgent

app = ramet.App(
    agents=[CounterAgent, ChatAgent, ThinkAgent],
    sub_agents=[Researcher, ThinkResearcher],
    allowed_origins=["*"],
)
