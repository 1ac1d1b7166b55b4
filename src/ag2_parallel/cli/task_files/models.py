"""What a task file may say: the models that it is checked by, and that its JSON schema is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from ag2_parallel.cli.task_files.document import resolved

Text: TypeAlias = Annotated[str, AfterValidator(str)]
"""Text, whatever it looks like; JSON's numbers are taken as they are written."""


def _a_prompt(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict | list):
        return resolved(value)
    raise PydanticCustomError("prompt", "a prompt is text, a message or a list of messages")


def _a_path(value: str) -> str:
    if not all(value.partition(":")):
        raise PydanticCustomError("path", 'write "module:attribute", as in "my_tools:search"')
    return str(value)


def _a_list(value: Any) -> Any:
    if isinstance(value, list):
        return value
    return [value if isinstance(value, dict) else {"data": value}]


def _attempts(value: Any) -> Any:
    return value if isinstance(value, dict) else {"max_attempts": value}


Free: TypeAlias = Annotated[Any, BeforeValidator(resolved)]
Mapped: TypeAlias = Annotated[dict[str, Any], BeforeValidator(resolved)]
Prompt: TypeAlias = Annotated[
    Any, BeforeValidator(_a_prompt, json_schema_input_type=str | dict[str, Any] | list[dict[str, Any]])
]
CodePath: TypeAlias = Annotated[str, AfterValidator(_a_path)]
"""`module:attribute`, looked for beside the file first."""
Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Checked(BaseModel):
    """Refuses unknown keys, and never shows a value in an error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, coerce_numbers_to_str=True)


class Retry(Checked):
    """Attempts, as a number or with the waits between them."""

    max_attempts: int = Field(ge=1, le=1000)
    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    on: list[Text] | None = Field(default=None, description="Kinds of errors that are tried again.")


Retries: TypeAlias = Annotated[Retry, BeforeValidator(_attempts, json_schema_input_type=int | Retry)]


class Agent(Checked):
    """An agent: the keyword arguments of AG2 Classic's ConversableAgent, functions by their paths."""

    framework: Literal["classic"] = Field(default="classic", description="Which line of AG2 the agent belongs to.")
    type: Text = Field(default="ConversableAgent", description="AssistantAgent, UserProxyAgent or module:Class.")
    name: Text | None = Field(default=None, description="Its name in chats; default: its key.")
    system_message: Text | None = None
    description: Text | None = None
    llm_config: Free = Field(default=None, description="Default: the file's llm_config; false: none.")
    tools: list[CodePath] = Field(default=[], description="Functions the model may call.")
    human_input_mode: Literal["NEVER", "TERMINATE", "ALWAYS"] = "NEVER"
    max_consecutive_auto_reply: int | None = None
    default_auto_reply: Prompt = None
    is_termination_msg: CodePath | None = None
    code_execution_config: Free = None
    context_variables: Mapped | None = None
    arguments: Mapped = Field(default={}, description="Further keyword arguments, for a class of your own.")


class Ag2Agent(Checked):
    """An agent of AG2 1.x: the keyword arguments of ag2.Agent, code by its paths."""

    framework: Literal["ag2"] = Field(description="Which line of AG2 the agent belongs to.")
    name: Text | None = Field(default=None, description="Its name; default: its key.")
    prompt: Text | None = Field(default=None, description="Its system prompt.")
    config: Mapped | None = Field(
        default=None, description="Its model: `provider`, openai where it is left out, `model` and more."
    )
    tools: list[CodePath] = Field(default=[], description="Functions the model may call.")
    agents: list[Text] = Field(default=[], description="Keys of other agents of AG2 1.x, which become tools.")
    description: Text | None = Field(default=None, description="What it does, where it is a tool of another agent.")
    response_schema: CodePath | None = Field(default=None, description="A type the answer is validated into.")
    arguments: Mapped = Field(default={}, description="Further keyword arguments.")


def _line(value: Any) -> str:
    said = value.get("framework", "classic") if isinstance(value, dict) else getattr(value, "framework", "classic")
    return str(said)


AnyAgent: TypeAlias = Annotated[
    Annotated[Agent, Tag("classic")] | Annotated[Ag2Agent, Tag("ag2")],
    Discriminator(
        _line,
        custom_error_type="framework",
        custom_error_message="framework is classic, for agents of AG2 Classic, or ag2, for those of AG2 1.x",
    ),
]


class Team(Checked):
    """Agents that work together."""

    pattern: Literal["two_agent", "round_robin", "auto", "sequence"] = Field(
        description="two_agent: the first chats with the second; round_robin: in turn; auto: a model chooses who "
        "speaks; sequence: each speaks once, in this order."
    )
    agents: list[Text] = Field(min_length=2, description="Keys of `agents`, in order.")
    max_rounds: int | None = Field(
        default=None, ge=1, description="The prompt counts as the first round; default: AG2's."
    )
    user: Text | None = Field(default=None, description="The agent that says the prompt and takes part.")
    llm_config: Free = Field(default=None, description="What chooses the speakers; default: the first agent's.")


class TaskFields(Checked):
    """What all tasks may have in common."""

    prompt: Prompt = Field(default=None, description="What the agent is asked, literally.")
    prompt_template: Text | None = Field(default=None, description="The same as a Jinja2 template.")
    agent: Text | None = Field(default=None, description="A key of `agents` or `teams`, or module:attribute.")
    agent_config: Mapped | None = Field(default=None, description="Keyword arguments of ConversableAgent.")
    run: CodePath | None = Field(default=None, description="A function of the TaskContext that does the work.")
    max_turns: int | None = Field(default=None, ge=1)
    summary_method: Text | None = None
    summary_args: Mapped | None = None
    context: Mapped | None = None
    timeout: Seconds | None = None
    attempt_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    retry: Retries | None = None
    priority: int = 0
    group: Text | None = None
    output_type: CodePath | None = Field(
        default=None, description="A type or pydantic model the answer is validated into."
    )
    output_retries: int = Field(default=0, ge=0)
    accept: CodePath | None = Field(default=None, description="A function that looks at the result.")
    metadata: Free = None


class Task(TaskFields):
    """One task. A `prompt_template` may use `upstream`, `context` and `metadata`."""

    name: Text
    depends_on: list[Text] = []


class TasksFrom(TaskFields):
    """One task for each row of a data set. A `prompt_template` may use its columns, and `row`."""

    data: Text = Field(
        description="A CSV, JSONL, JSON or Parquet file or a folder of text files, beside this file; - for standard input."
    )
    name: Text | None = Field(default=None, description="A Jinja2 template; default: row-000001 and so on.")
    encoding: Text | None = Field(
        default=None, description="Of the data file; default: UTF-8, or what its first bytes say."
    )


class RateLimitFields(Checked):
    """How much of a model server all tasks together may use."""

    requests: float | None = None
    tokens: float | None = None
    per: float = 60.0
    concurrent: int | None = None
    model: Text = "*"
    endpoint: Text = "*"
    group: Text = "*"
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class BudgetFields(Checked):
    """How much the model calls may cost or use."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_task_cost: float | None = None
    max_task_tokens: int | None = None


class BreakerFields(Checked):
    """What happens when task after task fails for one cause."""

    same_failures: int = 10
    action: Literal["stop", "pause"] = "stop"
    probe_after: float = 30.0


class RunOptions(Checked):
    """The options of the runner."""

    max_workers: int | None = None
    timeout: Seconds | None = None
    handle_errors: Literal["collect", "fail_fast", "ignore"] = "collect"
    attempt_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    run_timeout: Seconds | None = None
    count_waiting: bool = True
    grace: float = 1.0
    max_abandoned: int | None = None
    retry: Retries | None = None
    model_retry: Retries | None = None
    rate_limits: Literal["auto"] | list[RateLimitFields] | None = None
    adaptive: bool = False
    hedge_after: Literal["p95"] | float | None = None
    budget: BudgetFields | None = None
    breaker: BreakerFields | None = None
    order: Text | None = None
    backend: Text | None = None
    journal: Text | None = Field(default=None, description="A journal's file, beside this file.")
    directory: Text | None = Field(default=None, description="Root of the tasks' own folders, beside this file.")
    console: Literal["quiet", "prefix", "grouped"] = "quiet"
    resources: dict[str, CodePath] | None = None
    redact: CodePath | None = None
    human_input: Literal["refuse"] | CodePath = "refuse"
    observers: list[CodePath] = []


class TaskFile(Checked):
    """A task file of ag2-parallel."""

    llm_config: Free = Field(default=None, description="AG2's model configuration, for agents that have none.")
    defaults: TaskFields | None = Field(default=None, description="For every task that does not say otherwise.")
    agents: dict[str, AnyAgent] = {}
    teams: dict[str, Team] = {}
    tasks: list[Task] = []
    tasks_from: Annotated[
        list[TasksFrom], BeforeValidator(_a_list, json_schema_input_type=str | TasksFrom | list[TasksFrom])
    ] = []
    options: RunOptions | None = None


def file_schema() -> dict[str, Any]:
    """The JSON schema of task files."""
    schema = TaskFile.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
