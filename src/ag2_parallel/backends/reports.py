"""What a child says to its parent; see `wire`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.backends.message import message

if TYPE_CHECKING:
    from ag2_parallel.backends.orders import Key
    from ag2_parallel.records import CallRecord
    from ag2_parallel.results import TaskError
    from ag2_parallel.usage import Usage


@message
class Ready:
    """The first message: the child runs."""

    version: int
    pid: int


@message
class Alive:
    """The child's engine turns; `memory` are the bytes that its process has."""

    memory: int


@message
class Progress:
    """What an attempt has that the parent does not know yet.

    Attributes:
        key: The attempt.
        left: What is new of its draft; see `crossing.Left`.
        usage: Of its calls so far.
        waited: Seconds so far.
        directory: The task's folder, once it was used.
    """

    key: Key
    left: bytes
    usage: Usage
    waited: float
    directory: str | None


@message
class Ended:
    """An attempt's code is at its end.

    Attributes:
        progress: The last of what it has.
        ended: As in `ports.AttemptOutcome`.
        answer: Its answer; see `crossing.packed_answer`. None where there is none.
        error: Why it failed.
    """

    progress: Progress
    ended: str
    answer: bytes | None
    error: TaskError | None


@message
class LifeSign:
    """Something happened in a watched attempt."""

    key: Key


@message
class Waits:
    """An attempt began or ceased to wait."""

    key: Key
    waiting: bool
    on_person: bool


@message
class CutOff:
    """An attempt was refused a model call for good."""

    key: Key
    error: TaskError


@message
class Happened:
    """An event: the name of its class, and its fields."""

    run: str
    event: str
    fields: dict[str, Any]


@message
class Logged:
    """A record for a logger of this package."""

    logger: str
    level: int
    message: str
    task: str | None
    attempt: int | None


@message
class RunClosed:
    """What a run had open in a child is closed."""

    run: str


@message
class RunBroke:
    """What a run needs could not be had in a child."""

    run: str
    error: TaskError


@message
class Ask:
    """A model call wants to be sent.

    Attributes:
        ticket: Names it.
        run: The run, whose limits apply.
        endpoint: The server.
        mark: Tells its key from another.
        model: The model.
        group: The task's group.
        priority: The task's.
        tokens: Those it needs in all.
        sure: Those it needs in any case.
        patience: Seconds it may wait; None: as long as it takes.
    """

    ticket: int
    run: str
    endpoint: str
    mark: str
    model: str | None
    group: str | None
    priority: int
    tokens: int
    sure: int
    patience: float | None


@message
class Done:
    """A call that was let go has ended; it used so many tokens, or nobody knows."""

    ticket: int
    used: int | None
    went_through: bool


@message
class GaveUp:
    """A call does not wait any more, or was let go and not sent."""

    ticket: int


@message
class Passed:
    """So many calls went through on a standing permit that were not told of yet."""

    ticket: int
    count: int


@message
class Throttled:
    """The server asked for fewer requests, `took` seconds after the one it refused was sent."""

    ticket: int
    hint: float | None
    initial: float
    took: float


@message
class HeadersCame:
    """What the server announces of its limits."""

    ticket: int
    headers: dict[str, str]


@message
class Find:
    """An attempt that may be answered from records asks for the next one of a request."""

    key: Key
    number: int
    digest: str


@message
class Keep:
    """A live call of an attempt, to be written down."""

    key: Key
    number: int
    record: CallRecord


@message
class Effect:
    """An effect of a task begins, is finished or withdrawn.

    Attributes:
        run: The run.
        number: Names the question.
        task: The task's name.
        step: `begin`, `finish` or `withdraw`, as in `records.Receipts`.
        effect: Its key.
        value: For `finish`, what it returned.
    """

    run: str
    number: int
    task: str
    step: str
    effect: str
    value: str = ""


@message
class Charged:
    """A task has used so much more."""

    run: str
    index: int
    tokens: int
    cost: float


@message
class RefusedCall:
    """A call was refused because the run's budget is used up."""

    run: str


@message
class Learnt:
    """Keys that a task's own code uses, to be masked like those that the parent knows."""

    run: str
    secrets: tuple[str, ...]


@message
class WaitedFor:
    """Calls waited for a limit."""

    run: str
    limit: str
    seconds: float


@message
class Asked:
    """A question to a person."""

    number: int
    key: Key
    task: str
    agent: str | None
    prompt: str
    password: bool = False
