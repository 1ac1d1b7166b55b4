"""One attempt's conversation with an agent: asked, answered, asked again where the answer does not fit."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks import output_types
from ag2_parallel.frameworks.ag2.record import Record
from ag2_parallel.frameworks.ag2.task_stream import TaskStream, TurnsUsedUpError
from ag2_parallel.frameworks.ag2.transcript import Conversation, text_of
from ag2_parallel.frameworks.failures import ContentFilteredError, InvalidAnswerError
from ag2_parallel.ports import Answer

if TYPE_CHECKING:
    from ag2_parallel.ports import Work
    from ag2_parallel.tasks import ParallelTask

_REFLECTION: Final = "Summarize the takeaway from the conversation. Do not add any introductory phrases."


class Talk:
    """The conversation of one attempt with one agent, all of it the attempt's own."""

    def __init__(self, agent: Any, work: Work) -> None:
        """Nothing was asked yet."""
        self._agent = agent
        self._work = work
        self._task: ParallelTask = work.task
        self._scope = work.scope
        self._record = Record(work.scope, work.task.name)
        self._stream = TaskStream(work.scope, self._record, max_turns=work.task.max_turns)
        self._reply: Any = None

    async def answer(self) -> Answer:
        """Ask the prompt and read the answer; on the attempt's loop."""
        try:
            return await self._answer()
        except BaseException as error:
            self._record.close(
                f"the task was stopped ({error})" if isinstance(error, TaskStopped) else "the task ended"
            )
            raise

    @property
    def variables(self) -> dict[str, Any] | None:
        """The conversation's variables as they are now."""
        context = self._stream.context
        return None if context is None else dict(context.variables)

    async def _answer(self) -> Answer:
        retries = self._task.output_retries
        reason = await self._ask()
        text, output = "", None
        while True:
            try:
                text, output = self._text(), await self._output()
            except InvalidAnswerError as invalid:
                if self._scope.gate.filtered:
                    raise ContentFilteredError(
                        f"{invalid}: the provider's content filter left nothing of it"
                    ) from invalid
                if retries == 0 or self._reply is None or not self._reply.body:
                    raise
                retries -= 1
                reason = await self._ask_again(output_types.asked_again(invalid))
            else:
                break
        summary = await self._summary(text)
        self._scope.draft.summary = summary
        return Answer(output=summary if output is None else output, summary=summary, stop_reason=reason)

    async def _ask(self) -> str:
        from ag2 import Plugin

        prompt = Conversation(self._work.ctx.prompt, self._task.name)
        context = self._work.ctx.context
        more: dict[str, Any] = {"plugins": [Plugin(prompt=prompt.system)]} if prompt.system else {}
        for event in prompt.history:
            self._record.remember(event, self._agent.name)
        return await self._turn(
            self._agent.resume(
                *prompt.history,
                prompt.trigger,
                stream=self._stream,
                variables=context,
                dependencies=dict(context),
                **more,
                **self._schema(),
            )
        )

    async def _ask_again(self, message: str) -> str:
        return await self._turn(self._reply.ask(message, **self._schema()))

    async def _turn(self, asked: Any) -> str:
        try:
            self._reply = await asked
        except TurnsUsedUpError:
            self._reply = None
            self._record.close("the conversation had its last turn")
            return "max_turns"
        self._record.ensure_said(self._reply.response, self._agent.name)
        return "answered"

    def _schema(self) -> dict[str, Any]:
        """The `response_schema` where the task's `output_type` takes the agent's place: providers can be asked for models."""
        output_type = self._task.output_type
        if output_type is None:
            return {}
        return {"response_schema": output_type if output_types.is_model(output_type) else None}

    def _text(self) -> str:
        """What the conversation ended with."""
        last = self._scope.draft.chat_history[-1] if self._reply is None else None
        if last is not None:  # it ended at a tool call
            spoken = [m for m in self._scope.draft.chat_history if m["role"] == "assistant" and text_of(m["content"])]
            return text_of(spoken[-1]["content"]) if spoken else ""
        text = self._reply.body or ""
        if not text.strip() and not self._reply.files:
            raise InvalidAnswerError(
                f'task "{self._task.name}": agent "{self._agent.name}" ended its turn without an answer'
            )
        return text

    async def _output(self) -> Any:
        """The value that was asked for, None where it is the summary."""
        from pydantic import ValidationError

        if self._task.output_type is not None:
            return output_types.validated(self._task.output_type, self._text())
        if self._reply is None:
            return None
        if self._agent.response_schema is None:
            return self._reply.files if not self._reply.body else None
        try:
            return await self._reply.content()
        except ValidationError as error:
            raise InvalidAnswerError(output_types.told(error)) from error

    async def _summary(self, text: str) -> str | None:
        method = self._task.summary_method
        if method is None or self._reply is None:
            return None if method is None else text
        arguments = dict(self._task.summary_args or {})
        if method == "reflection_with_llm":
            prompt = arguments.get("summary_prompt") or _REFLECTION
            reply = await self._reply.ask(prompt, response_schema=None)
            if not (reply.body or "").strip():
                raise InvalidAnswerError(
                    f'task "{self._task.name}": the model gave an empty summary of the conversation'
                )
            return str(reply.body)
        if callable(method):
            made: Any = method(self._agent, self._reply, arguments)
            return str(await made if inspect.isawaitable(made) else made)
        return text
