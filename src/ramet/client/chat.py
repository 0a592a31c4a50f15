"""The chat of one agent as a client has it: what it asks, what it is answered, the messages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ramet.client.answers import Answers
from ramet.client.link import Link
from ramet.client.options import ClientOptions
from ramet.client.reply import Answer, ChatReply
from ramet.client.settled import Settled
from ramet.client.transcript import Transcript
from ramet.core.json import JsonObject, dumps, text_at
from ramet.errors import CallTimedOut, ClientError, RemoteCallFailed
from ramet.protocol import types
from ramet.protocol.messages import trailing_user_ids, user_message
from ramet.protocol.ui_message import UIMessage

_REQUEST_ID_LENGTH = 8


class Chat:
    """The chat of one client."""

    def __init__(
        self,
        link: Link,
        options: ClientOptions,
        *,
        history: Callable[[], Awaitable[Sequence[UIMessage]]],
    ) -> None:
        self._link = link
        self._options = options
        self._history = history
        self._probes: list[Settled[Answer | None]] = []
        self._chats = False
        self.transcript = Transcript()
        self._answers = Answers(self.transcript, link.post, options.ids)
        self._takers: Mapping[str, Callable[[JsonObject], None]] = {
            types.CHAT_RESPONSE: self._answers.response,
            types.CHAT_MESSAGES: self._messages,
            types.CHAT_CLEAR: lambda _: self._cleared(),
            types.MESSAGE_UPDATED: lambda frame: self.transcript.update(frame.get("message")),
            types.STREAM_RESUMING: self._offered,
            types.STREAM_PENDING: self._pending,
            types.STREAM_RESUME_NONE: self._nothing,
        }

    async def ask(
        self, asked: str | Sequence[UIMessage], *, body: Mapping[str, object]
    ) -> ChatReply:
        """Add to the chat and have it answered; see `AgentClient.chat`."""
        ids, transcript = self._options.ids, self.transcript
        await self._link.socket_in_time()
        if not transcript.known:
            stored = await self._history()
            await self._link.socket_in_time()
            if not transcript.known:
                transcript.replace([*stored])
        before = transcript.messages
        new = [user_message(asked, id=ids.message_id(""))] if isinstance(asked, str) else asked
        transcript.add(new)
        request_id = ids.url_safe(_REQUEST_ID_LENGTH)
        whole = dumps({**body, "messages": transcript.messages, "trigger": "submit-message"})
        answer = self._new(request_id, trailing_user_ids(transcript.messages))
        known = {each.get("id") for each in before}
        answer.added = frozenset(str(each["id"]) for each in new if each["id"] not in known)
        self._answers.expect(answer)
        try:
            await self._link.send(
                dumps(
                    {
                        "type": types.CHAT_REQUEST,
                        "id": request_id,
                        "init": {"method": "POST", "body": whole},
                    }
                )
            )
        except BaseException:
            self._answers.forget(answer)
            transcript.messages = before
            raise
        return self._reply(answer)

    async def resume(self) -> ChatReply | None:
        """Take up an answer that is being written; see `AgentClient.resume`."""
        probe: Settled[Answer | None] = Settled()
        await self._link.socket()
        self._probes.append(probe)
        self._answers.probe()
        seconds = self._options.seconds(None)
        try:
            async with self._options.clock.timeout(seconds):
                answer = await probe.wait()
        except TimeoutError as error:
            told = f"The server did not say within {seconds:g} s whether it is answering"
            raise CallTimedOut(told) from error
        finally:
            if probe in self._probes:
                self._probes.remove(probe)
        return None if answer is None else self._reply(answer)

    async def cancel(self, request_id: str) -> None:
        """Ask the server to stop a request's turn."""
        await self._link.send(dumps({"type": types.CHAT_CANCEL, "id": request_id}))

    async def clear(self) -> None:
        """Forget the chat, for everybody."""
        await self._link.send(dumps({"type": types.CHAT_CLEAR}))
        self._cleared()

    def take(self, frame_type: str, frame: JsonObject) -> bool:
        """Take a frame; False when it is none of a chat."""
        taker = self._takers.get(frame_type)
        if taker is not None:
            self._chats = True
            taker(frame)
        return taker is not None

    def refused(self, text: str) -> None:
        """Fail what was asked of an agent that has never said anything of a chat."""
        if not self._chats:
            self.over(RemoteCallFailed(f"The agent does not chat: {text}"))

    def opened(self) -> None:
        """Go on with the answers that are not over, on a new socket."""
        self._answers.opened()

    def lost(self, error: ClientError) -> None:
        """Note that the socket has gone; answers wait for the next."""
        self.transcript.known = False
        for probe in self._probes:
            probe.fail(error)

    def over(self, error: ClientError) -> None:
        """Fail all answers: no socket will come."""
        self.lost(error)
        self._answers.over(error)

    def _new(self, request_id: str, message_ids: Sequence[str]) -> Answer:
        return Answer(request_id, message_ids, limit=self._options.max_buffered_bytes)

    def _reply(self, answer: Answer) -> ChatReply:
        return ChatReply(answer, self.cancel)

    def _cleared(self) -> None:
        self.transcript.replace([])
        self._answers.cleared()

    def _messages(self, frame: JsonObject) -> None:
        self.transcript.replace(frame.get("messages"))
        self._answers.look_again()

    def _offered(self, frame: JsonObject) -> None:
        request_id = text_at(frame, "id")
        if request_id is None:
            return
        self._track(request_id)
        lost = frame.get("goesOnFor")
        self._answers.offered(request_id, goes_on_for=lost if isinstance(lost, list) else ())

    def _pending(self, frame: JsonObject) -> None:
        request_id = text_at(frame, "id")
        if request_id is not None:
            self._track(request_id)
        self._answers.pending(request_id)

    def _nothing(self, frame: JsonObject) -> None:
        self._told(None)
        self._answers.nothing()

    def _track(self, request_id: str) -> None:
        """Hand a request that the server has named to those who asked whether there is one."""
        if self._probes:
            answer = self._answers.find(request_id)
            if answer is None:
                answer = self._new(request_id, ())
                self._answers.take_up(answer)
            self._told(answer)

    def _told(self, answer: Answer | None) -> None:
        for probe in self._probes:
            probe.succeed(answer)
        self._probes.clear()
