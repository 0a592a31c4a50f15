"""`AgentClient`: one agent on some server, as a Python program has it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from ramet.client.address import address_of
from ramet.client.calls import Calls
from ramet.client.chat import Chat
from ramet.client.checked import checked_body, checked_messages, checked_timeout
from ramet.client.history import stored_messages
from ramet.client.link import Link
from ramet.client.options import ClientOptions
from ramet.client.ports import Opener
from ramet.client.receiver import Identity, Receiver
from ramet.client.reply import ChatReply
from ramet.client.streaming import StreamingCall
from ramet.client.web_socket import WebSocketOpener
from ramet.core.json import AnyJson, JsonObject, dumps, to_json_strict
from ramet.errors import ConnectionLost
from ramet.protocol import types
from ramet.protocol.ui_message import UIMessage

_CONNECTION_ID_LENGTH = 21


class AgentClient:
    """A connection to one agent, which is made again when it is lost.

    Use it as `async with AgentClient(…) as client`, or call `connect` and `close`. It belongs to
    the event loop that it was connected in. Everything that was under way when the client is closed
    or its connection is lost for good fails with a `ClientError`.
    """

    def __init__(
        self,
        url: str,
        *,
        agent: str,
        name: str = "default",
        sub: Sequence[tuple[str, str]] = (),
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        options: ClientOptions | None = None,
        opener: Opener | None = None,
    ) -> None:
        """Say what to connect to; nothing is sent yet.

        Args:
            url: The server: `http://…`, `https://…`, `ws://…` or `wss://…`, with the path under
                which the application is mounted, if any.
            agent: The class of the root agent.
            name: Its name.
            sub: Class and name of each agent on the way down to a sub-agent; for a run
                `[(run.agent_type, run.run_id)]`.
            query: What the hooks of the server see as `request.query`.
            headers: Sent when connecting, such as `authorization`.
            options: Time-outs, reconnecting, limits.
            opener: Opens sockets in place of the usual one, for tests.

        Raises:
            InvalidOptions: The URL is not that of a server.
            InvalidAgentName: A name that no agent can have.
            InvalidArguments: A class or a name is no text, or `sub` is no list of pairs.
        """
        self.options = options or ClientOptions()
        address = address_of(
            url,
            [(agent, name), *sub],
            prefix=self.options.prefix,
            query=query or {},
            connection_id=self.options.ids.url_safe(_CONNECTION_ID_LENGTH),
        )
        self._readable = address.readable
        sent = dict(headers or {})
        opener = opener or WebSocketOpener(self.options.max_frame_bytes)
        history = partial(
            stored_messages,
            address.transcript_url,
            sent,
            seconds=self.options.connect_timeout,
        )
        self._link = Link(address, sent, opener=opener, options=self.options)
        self._calls = Calls(self._link, self.options)
        self._chat = Chat(self._link, self.options, history=history)
        self._receiver = Receiver(self._link, self._calls, self._chat, options=self.options)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect, and wait until the server has said who was reached and sent its state.

        This first connection is tried once; later ones as the options say. A client that has given
        up may be connected again.

        Raises:
            ConnectionLost: Nobody answers, or the connection broke off at once.
            ConnectionRefused: The server does not let this client in, or has no such agent.
        """
        if not self._link.is_running:
            self._receiver.begin()
            await self._link.start(self._receiver)
        seconds = self.options.connect_timeout
        try:
            async with self.options.clock.timeout(seconds):
                await self._receiver.ready.wait()
        except TimeoutError as error:
            await self.close()
            raise ConnectionLost(
                f"{self._readable} did not say within {seconds:g} s who it is; if it sends this "
                "client no protocol frames, use ClientOptions(wait_for_identity=False)"
            ) from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection; harmless when it is closed."""
        await self._link.close()

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._link.is_open

    @property
    def identity(self) -> Identity | None:
        """Who was reached; None before the server has said it."""
        return self._receiver.identity

    @property
    def state(self) -> AnyJson:
        """The agent's state as this client knows it; None before one came."""
        return self._receiver.state

    async def set_state(self, state: object) -> None:
        """Set the agent's whole state: here at once, there when the server has it.

        A server that does not take it says so to `on_state_error`, and its agent keeps its own.

        Raises:
            NotJson: JSON cannot carry it.
            ConnectionLost: The connection broke while it was sent.
        """
        value = to_json_strict(state)
        self._receiver.set_state(value)
        await self._link.send(dumps({"type": types.STATE, "state": value}))

    def on_state(self, listener: Callable[[AnyJson], object]) -> Callable[[], None]:
        """Call `listener` with each new state, from wherever; the result ends that."""
        return self._receiver.states.add(listener)

    def on_state_error(self, listener: Callable[[str], object]) -> Callable[[], None]:
        """Call `listener` with the server's words when it refuses a state; the result ends that."""
        return self._receiver.state_errors.add(listener)

    async def call(self, method: str, *args: object, timeout: float | None = None) -> AnyJson:  # noqa: ASYNC109 - it is the wait for an answer, on the client's own clock
        """Call a method of the agent and wait for what it returns. It is sent at most once.

        While the connection is being made again the call waits for it. A connection that breaks
        after it was sent fails it: the method may have run.

        Args:
            method: The method, in snake_case or camelCase.
            *args: What it is called with.
            timeout: Seconds to wait; None for `ClientOptions.call_timeout`, infinity for ever.

        Raises:
            RemoteCallFailed: The agent answered with an error.
            CallTimedOut: No answer came in time.
            ConnectionLost: The connection broke before the answer came, or is gone for good.
            InvalidArguments: The method or the time-out is none, or JSON cannot carry an argument.
        """
        seconds = self.options.seconds(checked_timeout(timeout))
        return await self._calls.call(method, args, seconds=seconds)

    def stream(self, method: str, *args: object) -> StreamingCall:
        """Call a streaming method; iterate over what this gives. It is sent when reading begins."""
        return self._calls.stream(method, args)

    async def send(self, frame: Mapping[str, object] | str) -> None:
        """Send any frame: a text as it is, anything else as JSON."""
        await self._link.send(frame if isinstance(frame, str) else dumps(frame))

    def on_frame(self, listener: Callable[[JsonObject], object]) -> Callable[[], None]:
        """Call `listener` with every JSON object that comes, in order, after it took effect here.

        Returns:
            The function that ends it.

        Raises:
            InvalidArguments: It is async, or no function; so with every listener.
        """
        return self._receiver.frames.add(listener)

    def on_run_event(self, listener: Callable[[JsonObject], object]) -> Callable[[], None]:
        """Call `listener` with the events of runs; the first one gets those that came before it.

        `AgentToolEvents` makes runs out of them. The result ends it.
        """
        return self._receiver.run_events.add(listener)

    @property
    def messages(self) -> Sequence[UIMessage]:
        """The chat as the server sent it last, with what this client has asked since."""
        return self._chat.transcript.messages

    async def chat(
        self,
        asked: str | Sequence[UIMessage],
        *,
        body: Mapping[str, object] | None = None,
    ) -> ChatReply:
        """Ask the agent something; the answer is there when it is done, and while it is written.

        Args:
            asked: A text, or the messages to add to the chat.
            body: What `turn.body` holds on the server.

        Raises:
            InvalidArguments: It is neither a text nor messages, or the body cannot be sent.
            ConnectionLost: The connection broke while it was sent; the question may have arrived.
        """
        asked = asked if isinstance(asked, str) else checked_messages(asked)
        return await self._chat.ask(asked, body=checked_body(body))

    async def resume(self) -> ChatReply | None:
        """Take up an answer that is being written, or that has failed, from its first chunk.

        Returns:
            The answer, whoever has asked; None when there is none.
        """
        return await self._chat.resume()

    async def cancel_chat(self, request_id: str) -> None:
        """Ask the server to stop a request's answer, of any client."""
        await self._chat.cancel(request_id)

    async def clear_chat(self) -> None:
        """Clear the chat, for everybody."""
        await self._chat.clear()
