"""The answers that are not over: which frames are theirs, and how they are taken up again."""

from collections.abc import Callable, Iterable, Sequence

from ramet.client.reply import Answer
from ramet.client.transcript import Transcript
from ramet.core.ids import Ids
from ramet.core.json import JsonObject, JsonValue, dumps, text_at
from ramet.errors import ClientError, ConnectionLost
from ramet.protocol import types

_PROBE_ID_LENGTH = 12
_NOT_THERE = (
    "The connection was lost before the server had the question, which was not answered: ask again"
)


class Answers:
    """The open answers of one chat, by the request that they answer now.

    On a new socket the server is asked what it is at. An answer that it does not name has ended, or
    stands in a queue: its request is acknowledged as soon as that cannot harm, and the server sends
    what there is of it. A turn that was lost goes on under another request, which is offered with
    the requests that it goes on for.
    """

    def __init__(self, transcript: Transcript, post: Callable[[str], None], ids: Ids) -> None:
        self._transcript = transcript
        self._post = post
        self._ids = ids
        self._open: dict[str, Answer] = {}
        self._acknowledged: set[str] = set()
        self._stranger: str | None = None
        """A request that was offered and is none of ours."""
        self._idle = False
        """Whether the server has said that it is at nothing."""

    def find(self, request_id: str) -> Answer | None:
        """The open answer to a request."""
        return self._open.get(request_id)

    def expect(self, answer: Answer) -> None:
        """Wait for the answer to a request that is sent now."""
        if self._stranger is not None:
            self._acknowledge(self._stranger)
        self._idle = False
        self.keep(answer)

    def keep(self, answer: Answer) -> None:
        """Take the frames of an answer from now on."""
        answer.attached = True
        self._open[answer.request_id] = answer

    def take_up(self, answer: Answer) -> None:
        """Take the frames of an answer that is under way, from the first."""
        self.keep(answer)
        self._acknowledged.discard(answer.request_id)

    def forget(self, answer: Answer) -> None:
        """Take no more frames of an answer."""
        self._open.pop(answer.request_id, None)

    def opened(self) -> None:
        """Begin anew on another socket."""
        self._acknowledged.clear()
        self._stranger, self._idle = None, False
        for answer in self._open.values():
            answer.attached = False
        if self._open:
            self.probe()

    def over(self, error: ClientError) -> None:
        """Fail them all."""
        answers, self._open = self._open, {}
        for answer in answers.values():
            answer.fail(error)

    def cleared(self) -> None:
        """Note that what is being answered no longer belongs to the chat."""
        for answer in self._open.values():
            answer.cleared = True

    def probe(self) -> None:
        """Ask the server what it is at."""
        probe_id = self._ids.url_safe(_PROBE_ID_LENGTH)
        self._post(dumps({"type": types.STREAM_RESUME_REQUEST, "probeId": probe_id}))

    def look_again(self) -> None:
        """Ask once more, when something has changed and there is an answer that nobody sends."""
        if self._stranger is not None and any(self._unattached()):
            self._stranger = None
            self.probe()

    def offered(self, request_id: str, *, goes_on_for: Sequence[JsonValue] = ()) -> None:
        """Take the stream that the server offers, if it is one of ours or goes on for one.

        Args:
            request_id: The request whose stream it is.
            goes_on_for: The lost requests that it goes on for, as the server says.
        """
        self._idle = False
        if request_id in self._open:
            self._acknowledge(request_id)
            return
        self._stranger = request_id
        lost = next((self._open[str(each)] for each in goes_on_for if each in self._open), None)
        if lost is not None:
            self._hand_over(lost, request_id)
        for answer in tuple(self._unattached()):
            self._acknowledge(answer.request_id)

    def pending(self, request_id: str | None) -> None:
        """Wait: a turn will stream, and be offered then."""
        self._idle = False
        answer = self._open.get(request_id or "")
        if answer is not None:
            answer.attached = True

    def nothing(self) -> None:
        """Ask for the ends of what is over: the server is at nothing."""
        self._idle, self._stranger = True, None
        for answer in tuple(self._open.values()):
            if not answer.attached:
                self._acknowledged.discard(answer.request_id)  # ignored while something streamed
                self._acknowledge(answer.request_id)
            elif answer.recovering:
                self._end_as_stored(answer)

    def response(self, frame: JsonObject) -> None:
        """Take a frame of an answer."""
        request_id = text_at(frame, "id") or ""
        answer = self._open.get(request_id)
        if answer is None:
            if frame.get("done") is True:
                self._over_elsewhere(request_id, frame)
            elif frame.get("seq") == 0 and any(each.recovering for each in self._open.values()):
                self.probe()  # what is offered then says for which lost request it goes on
            return
        answer.attached = True
        body, seq = text_at(frame, "body") or "", frame.get("seq")
        if frame.get("error") is True:
            self._end(answer, frame, body)
            return
        if body:
            number = seq if isinstance(seq, int) else None
            answer.chunk(body, seq=number, replay=frame.get("replay") is True)
        if frame.get("done") is True:
            self._done(answer, frame)

    def _done(self, answer: Answer, frame: JsonObject) -> None:
        outcome = text_at(frame, "outcome")
        if outcome == "recovering":
            answer.recovering = True
            if self._idle:
                self._end_as_stored(answer)
        elif outcome is None and frame.get("replay") is True and not answer.received.any:
            self.forget(answer)
            answer.fail(ConnectionLost(_NOT_THERE))
        else:
            self._end(answer, frame, None)

    def _end(self, answer: Answer, frame: JsonObject, error: str | None) -> None:
        self.forget(answer)
        message = answer.message
        if error is not None and "messageIds" not in frame and not answer.received.any:
            self._transcript.take_back(answer.added)  # no turn: the server could not read it
        if message["id"] and message["parts"] and not answer.cleared:
            self._transcript.put(message)
        answer.end(frame, error)
        if self._stranger is None and self._waits():
            self.probe()

    def _over_elsewhere(self, request_id: str, frame: JsonObject) -> None:
        """Note that a request has ended that nobody here follows.

        If it answers the questions of a lost answer it went on for that one, and is sent again.
        """
        answered = frame.get("messageIds")
        for answer in tuple(self._open.values()):
            if answer.recovering and answered and answered == [*answer.message_ids]:
                self._hand_over(answer, request_id)
                return
        if self._waits():
            self._stranger = None
            self.probe()

    def _waits(self) -> bool:
        """Whether there is an answer that nobody sends now."""
        return any(not each.attached or each.recovering for each in self._open.values())

    def _end_as_stored(self, answer: Answer) -> None:
        """End an answer that went on and ended while this client was away, by the transcript."""
        self.forget(answer)
        answer.end_with(self._transcript.answer_to(answer.message_ids))

    def _hand_over(self, answer: Answer, request_id: str) -> None:
        """Follow the request that goes on for a lost answer."""
        self.forget(answer)
        answer.follow(request_id)
        self.keep(answer)
        if self._stranger == request_id:
            self._stranger = None
        self._acknowledge(request_id)

    def _acknowledge(self, request_id: str) -> None:
        if request_id in self._acknowledged:
            return
        self._acknowledged.add(request_id)
        answer = self._open.get(request_id)
        if answer is not None:
            answer.received.replay_begins()
        self._post(dumps({"type": types.STREAM_RESUME_ACK, "id": request_id}))

    def _unattached(self) -> Iterable[Answer]:
        return (answer for answer in self._open.values() if not answer.attached)
