"""
The messages between a client and a detokenizer worker: msgpack arrays with a version, so that any language can speak them.

docs/worker.md has the schema in words. Every message is one frame. Its first element is its kind, the second the version of the
protocol; elements that are added at the end of an array are ignored by those who do not know them.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from ...errors import MissingExtra, WireError

try:
    import msgspec
except ImportError as error:
    raise MissingExtra("msgspec", extra="worker", purpose="a detokenizer worker") from error

__all__ = [
    "DEFAULT_MAX_FRAME",
    "MAX_WINDOW",
    "VERSION",
    "Ask",
    "Bye",
    "Extra",
    "Failure",
    "FromClient",
    "FromWorker",
    "Hello",
    "Open",
    "Output",
    "Problem",
    "Raw",
    "Refusal",
    "Reply",
    "Saved",
    "Status",
    "Step",
    "Welcome",
    "decode_from_client",
    "decode_from_worker",
    "decode_plain",
    "encode",
    "encode_plain",
]

VERSION = 2

# A step of 4,096 rows has 100 KB; what makes frames long are prompts and snapshots of requests that are opened in it.
DEFAULT_MAX_FRAME = 64 << 20

# So many steps may be unacknowledged: the worker keeps their replies, to say them again.
MAX_WINDOW = 64


Raw = msgspec.Raw
"""A part of a message that is encoded already."""

Slot = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
"""A number that the client chose for a request; never used again for another."""


class Extra(msgspec.Struct, array_like=True, frozen=True):
    """What a row has beside its ids, if it has anything."""

    logprobs: list[Any] | None = None
    """One for each id: a number, nil, or ``[logprob, rank, [[token id, logprob], ...]]``."""

    finish_reason: str | None = None
    stop_reason: int | str | None = None


class Open(msgspec.Struct, array_like=True):
    """A request that the worker does not have: a new one, or one that goes on."""

    slot: Slot
    prompt_ids: list[int]
    options: Raw
    """A map of the names of `RequestOptions` to values."""
    snapshot: bytes | None = None
    """Where it stood; instead of prompt and options."""
    tokens: list[int | list[int]] = []
    """Rows that came since; what they give was delivered, and is not said again."""
    extras: dict[int, Extra] = {}
    """Of these rows, by index."""


class Hello(msgspec.Struct, array_like=True, tag=1):
    """A session begins, or begins again: whatever the worker has of this client is void."""

    version: int
    client: str
    """Names the client, the same in all its sessions; random."""
    epoch: int
    """Higher in each session of the client."""
    seq: int
    """The number of the first step to come."""


class Step(msgspec.Struct, array_like=True, tag=2):
    """A step of the engine: a row for each request that it has something for."""

    version: int
    client: str
    epoch: int
    token: int
    """Of the Welcome: no other worker, and no other session of this one, takes the step for its own."""
    seq: int
    """One more than that of the step before."""
    ack: int
    """The client has the replies up to this one."""
    slots: list[Slot]
    """Whose row it is."""
    tokens: list[int | list[int]]
    """The ids of each row; a single one may stand without its array."""
    extras: dict[int, Extra] = {}
    """By index of the row."""
    opens: list[Open] = []
    """Before the rows."""
    closes: list[Slot] = []
    """Slots to be forgotten, before the rows."""
    wants: list[Slot] = []
    """Slots whose snapshots, taken behind the rows, are to be in the reply."""


class Ask(msgspec.Struct, array_like=True, tag=3):
    """Ask for the worker's metrics; outside of any session."""

    version: int


class Bye(msgspec.Struct, array_like=True, tag=4):
    """The client ends its session."""

    version: int
    client: str
    epoch: int


class Welcome(msgspec.Struct, array_like=True, tag=11):
    """The session has begun."""

    version: int
    client: str
    epoch: int
    token: int
    """What the steps of this session have to say; no session ever had it before."""
    pid: int
    fingerprint: str
    """Of the worker's tokenizer."""
    max_frame: int
    max_window: int
    max_idle: float
    """A request without a row for so many seconds expires."""


class Saved(NamedTuple):
    """A snapshot."""

    slot: int
    tokens: int
    """How many ids of the request it stands behind."""
    data: bytes


class Problem(NamedTuple):
    """What ended a request."""

    kind: str
    """The name of the exception."""
    message: str


class Failure(NamedTuple):
    """A request that ended without a row in this step."""

    slot: int
    kind: str
    message: str


class Output(msgspec.Struct, array_like=True):
    """What a row gave, if it is more than a text, and other ids than those that came with it."""

    token_ids: list[int] | None = None
    """None: those of the row."""
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    dropped_token_ids: list[int] = []
    tokens_kept: int | None = None
    text_end: int | None = None
    error: Problem | None = None
    logprobs: list[Any] | None = None
    segments: list[Any] | None = None
    channels: list[Any] | None = None
    cumulative: bool = False
    retracted_tokens: int = 0


class Reply(msgspec.Struct, array_like=True, tag=12):
    """What a step gave."""

    version: int
    client: str
    epoch: int
    seq: int
    texts: list[str]
    """Of each row."""
    outputs: dict[int, Output] = {}
    """By index of the row."""
    snapshots: list[Saved] = []
    """Those that were wanted."""
    evicted: list[Saved] = []
    """Requests that the worker has given up, for the client to keep, and to open when they go on."""
    failures: list[Failure] = []
    draining: bool = False
    """The worker is about to end; all that it had of the client is in `evicted`."""


class Status(msgspec.Struct, array_like=True, tag=13):
    """The metrics of a worker."""

    version: int
    pid: int
    text: str
    """In the text form of Prometheus."""


class Refusal(msgspec.Struct, array_like=True, tag=14):
    """A message that was not understood, or not possible."""

    version: int
    code: str
    """"malformed", "version", "too_large", "unknown_session", "gap", "window", "draining"."""
    field: str
    """Which part of the message."""
    message: str
    client: str = ""
    epoch: int = 0
    expected: int = 0
    """With "gap": the number of the step that the worker waits for."""


FromClient = Hello | Step | Ask | Bye
FromWorker = Welcome | Reply | Status | Refusal

_from_client: msgspec.msgpack.Decoder[FromClient] = msgspec.msgpack.Decoder(FromClient)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)
_encoder = msgspec.msgpack.Encoder()

encode = _encoder.encode
"""Return the frame of a message."""

encode_plain = _encoder.encode
"""Return plain data as msgpack: a snapshot, or options."""

decode_plain = msgspec.msgpack.decode
"""Return what `encode_plain` took."""


def decode_from_client(frame: bytes) -> FromClient:
    """
    Return what a client says.

    Raises:
        WireError: It is garbage, or of another version.
    """
    message: FromClient = _decoded(_from_client, frame)
    return message


def decode_from_worker(frame: bytes) -> FromWorker:
    """Return what a worker says. Errors as `decode_from_client`."""
    message: FromWorker = _decoded(_from_worker, frame)
    return message


def _decoded(decoder: msgspec.msgpack.Decoder[Any], frame: bytes) -> Any:
    try:
        message = decoder.decode(frame)
        version = message.version
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        # Another version may have another shape, which is then not what is wrong with it.
        kind, version = _head(frame)
        if version == VERSION:
            field, problem = _place(str(error), kind)
            raise WireError("malformed", field=field, problem=problem) from None
    if version is None:
        raise WireError("malformed", field="frame", problem="it is no array of a kind and a version in msgpack")
    if version != VERSION:
        raise WireError("version", field="version", problem=f"it is {version!r}, and this side speaks {VERSION}")
    return message


def _head(frame: bytes) -> tuple[Any, Any]:
    """The kind and the version of a message that is not understood; None if it is none."""
    try:
        message = msgspec.msgpack.decode(frame)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None, None
    return (message[0], message[1]) if isinstance(message, list) and len(message) > 1 else (None, None)


def _place(text: str, kind: Any) -> tuple[str, str]:
    """Split the decoder's words into the field of a message of a kind, and what is wrong with it."""
    problem, found, path = text.partition(" - at `$[")
    if not found:
        return "frame", problem
    index, _, rest = path.rstrip("`").partition("]")
    fields = _FIELDS.get(kind, ()) if isinstance(kind, int) else ()
    place = int(index) - 1
    return (fields[place] if 0 <= place < len(fields) else f"element {index}") + rest, problem


_FIELDS: dict[Any, tuple[str, ...]] = {
    message.__struct_config__.tag: message.__struct_fields__
    for message in (Hello, Step, Ask, Bye, Welcome, Reply, Status, Refusal)
}
