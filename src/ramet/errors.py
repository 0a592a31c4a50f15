"""Every error that ramet raises, as one tree.

RametError
├── ConfigurationError        wrong set-up, found at class definition or construction
│   ├── DuplicateAgentName    two classes with one name or one URL form
│   ├── InvalidOptions        an option with a value it cannot have
│   ├── DataDirectoryError    the data directory cannot be used
│   │   ├── DataDirectoryInUse
│   │   ├── DataDirectoryNotFound
│   │   └── DataDirectoryNotWritable
│   ├── PortInUse             `ramet serve` cannot listen there
│   ├── HostUnreachable       a command needs the host of a data directory, and cannot ask it
│   └── NotRunning            the app was used before its lifespan started it
├── AddressError              an agent that cannot be reached
│   ├── AgentNotRegistered    a class used but not given to `App`
│   ├── InvalidAgentName
│   ├── AgentNotFound         an operator asked for one that is not stored
│   ├── SubAgentNotFound
│   └── NotASubAgent          `parent_agent` where there is no such parent
├── CallError                 a call that cannot be made
│   ├── MethodNotFound
│   ├── MethodNotCallable     it exists, but clients may not call it
│   ├── InvalidArguments
│   ├── InvalidSchedule       a time, delay or cron line that no schedule can have
│   └── ResultNotJson
├── StateError
│   ├── ConnectionReadonly
│   └── StateRejected
├── ChatError
│   ├── ChunkTooLarge
│   ├── TurnInsideTurn        a blocking turn started from inside a turn
│   ├── UnknownModelResult    a chunk or message that is not one
│   └── NoModel               a `Think` without a model
├── AgentToolError
│   ├── NotAnAgentTool        the child lacks the adapter methods
│   ├── NoCurrentAgent        an agent tool used outside an agent
│   ├── RunNotFound           an operator asked for one that is not there, or for one of several
│   └── RunBelongsToAnother   one run id, two classes or two questions
├── FiberError
│   └── NoCurrentFiber        `stash` outside a fiber
├── NotJson                   a value that JSON cannot carry, or a text that is not JSON
├── StorageError
│   └── DatabaseUnusable      the file cannot be opened, read or written
├── ClientError               something about an `AgentClient`
│   ├── ConnectionRefused     the server does not want the connection; it is not tried again
│   ├── ConnectionLost        it could not be made, or broke off
│   ├── ClientClosed          the client was closed, or not connected yet
│   ├── RemoteCallFailed      the agent answered a call with an error
│   ├── CallTimedOut          no answer in time
│   └── ReaderTooSlow         an answer was not read in time
└── InstanceGone              this instance was stopped; its storage and outputs are fenced

A class says with `public` whether its message may reach a client (see `ramet.core.public_errors`).
"""

from typing import ClassVar


class RametError(Exception):
    """The root of every error that ramet raises on purpose."""

    public: ClassVar[bool] = False


class ConfigurationError(RametError):
    """The set-up is wrong; nothing was started."""


class DuplicateAgentName(ConfigurationError):
    """Two classes share one name or one URL form; give one of them `AgentOptions(name=…)`."""


class InvalidOptions(ConfigurationError, ValueError):
    """An option has a value it cannot have."""


class DataDirectoryError(ConfigurationError):
    """The data directory cannot be used."""


class DataDirectoryInUse(DataDirectoryError):
    """Another process holds the data directory; stop it or choose another directory."""


class DataDirectoryNotFound(DataDirectoryError):
    """There is no data directory to look at, or this process may not."""


class DataDirectoryNotWritable(DataDirectoryError):
    """The data directory cannot be made or written."""


class PortInUse(ConfigurationError):
    """Something listens on that port already; stop it or choose another port."""


class HostUnreachable(ConfigurationError):
    """A command needs the host of a data directory: none runs, or it cannot be asked."""


class NotRunning(ConfigurationError):
    """The app was used before it was started, or after it was stopped."""


class AddressError(RametError):
    """An agent cannot be reached under the address that was given."""

    public: ClassVar[bool] = True


class AgentNotRegistered(AddressError, LookupError):
    """A class was used that was not given to `App(agents=…, sub_agents=…)`."""


class InvalidAgentName(AddressError, ValueError):
    """A name that no agent can have."""


class AgentNotFound(AddressError, LookupError):
    """No agent is stored under the address that an operator asked for."""


class SubAgentNotFound(AddressError, LookupError):
    """There is no such sub-agent."""


class NotASubAgent(AddressError):
    """A parent was asked for where there is none of that class."""


class CallError(RametError):
    """A call cannot be made as it was asked for."""

    public: ClassVar[bool] = True


class MethodNotFound(CallError, AttributeError):
    """The agent has no method of that name."""


class MethodNotCallable(CallError):
    """The method exists, but is not callable from there."""


class InvalidArguments(CallError, TypeError):
    """The arguments do not fit the method."""


class InvalidSchedule(CallError, ValueError):
    """A delay, date, interval or cron line that no schedule can have; nothing was stored."""


class ResultNotJson(CallError, TypeError):
    """The method returned something that JSON cannot carry."""


class StateError(RametError):
    """A state was not accepted."""

    public: ClassVar[bool] = True


class ConnectionReadonly(StateError, PermissionError):
    """The connection may not change the state."""

    def __init__(self, message: str = "Connection is readonly") -> None:
        super().__init__(message)


class StateRejected(StateError, ValueError):
    """`validate_state_change` did not accept the state."""


class ChatError(RametError):
    """Something about a chat turn."""

    public: ClassVar[bool] = True


class ChunkTooLarge(ChatError, ValueError):
    """A chunk is larger than `HostOptions.max_chunk_bytes`; the turn ends with this error."""


class TurnInsideTurn(ChatError):
    """A blocking turn was started from inside a turn of the same agent; it would never begin."""


class UnknownModelResult(ChatError, TypeError):
    """A chunk or message has a form that is not known."""


class NoModel(ChatError):
    """A `Think` agent has no model: set `model` or override `get_model`."""


class AgentToolError(RametError):
    """Something about a run of an agent as a tool."""

    public: ClassVar[bool] = True


class NotAnAgentTool(AgentToolError, TypeError):
    """The class lacks the adapter methods of an agent tool."""


class NoCurrentAgent(AgentToolError):
    """An agent tool was used outside the turn of an agent."""


class RunNotFound(AgentToolError, LookupError):
    """There is no run of the id that an operator asked for, or several agents have one."""


class RunBelongsToAnother(AgentToolError, ValueError):
    """The run id is taken by another class or turn, or the idempotency key by another input."""


class FiberError(RametError):
    """Something about a fiber."""

    public: ClassVar[bool] = True


class NoCurrentFiber(FiberError):
    """The running code belongs to no fiber."""


class NotJson(RametError, ValueError):
    """A value that JSON cannot carry, or a text that is not JSON."""


class StorageError(RametError):
    """Something about an agent's database."""


class DatabaseUnusable(StorageError):
    """A database file cannot be opened, read or written."""


class ClientError(RametError):
    """Something about an `AgentClient` and its connection."""


class ConnectionRefused(ClientError):
    """The server does not want the connection, or is none of agents; it is not tried again.

    Attributes:
        code: The close code of the WebSocket, 4000 + the status that a hook gave; 0 when the
            server never opened one.
        reason: What the server said.
    """

    def __init__(self, message: str, *, code: int, reason: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ConnectionLost(ClientError, ConnectionError):
    """The connection could not be made, or broke off; what waited for it may have happened."""


class ClientClosed(ClientError):
    """The client was closed by its program, or is not connected yet."""


class RemoteCallFailed(ClientError):
    """The agent answered a call with an error; the message is the server's."""


class CallTimedOut(ClientError, TimeoutError):
    """A call got no answer in time; it may still run."""


class ReaderTooSlow(ClientError):
    """Chunks or items came faster than they were read, and more waited than may."""


class InstanceGone(RametError):
    """The instance was stopped: it can no longer read, write, send or call.

    Raised inside code of an instance that was aborted, deleted, crashed or shut down, and to
    callers that waited for it. Stored data is untouched; the next access opens a new instance.
    """

    public: ClassVar[bool] = True
