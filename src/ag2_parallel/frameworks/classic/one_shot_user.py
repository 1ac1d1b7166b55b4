"""The user that the runner makes where a chat has none: it sends the prompt and executes tools."""

from __future__ import annotations

import inspect
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.frameworks.classic.transcript import calls_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

USER_NAME: Final = "user"

_SELDOM_ASKED: Final = ("handoffs", "context_variables")


def one_shot_user(taken: Sequence[str]) -> Any:
    """The user that starts a chat and executes tools: without a model, never asking a person."""
    user = _user_template().clone().root
    while user.name in taken:
        user._name = f"task_{user.name}"  # noqa: SLF001 - the copy's own
    return user


@cache
def _user_template() -> Any:
    """Copied for each chat, which takes a tenth of the time of making one."""
    from ag2_parallel.frameworks.classic.cloning import Template

    user = _user_class()(
        USER_NAME,
        llm_config=False,
        human_input_mode="NEVER",
        is_termination_msg=lambda message: not calls_tool(message),
        code_execution_config=False,
    )
    user._reply_func_list = [each for each in user._reply_func_list if _is_asked(each["reply_func"])]  # noqa: SLF001
    for name in _SELDOM_ASKED:
        del vars(user)[name]
    return Template(user)


def _user_class() -> type[Any]:
    """AG2's agent, which makes what a user is seldom asked for when it is: what is not copied for each chat costs nothing."""
    from autogen import ConversableAgent
    from autogen.agentchat.group import ContextVariables
    from autogen.agentchat.group.handoffs import Handoffs

    class User(ConversableAgent):  # type: ignore[misc]  # AG2 has no types
        @cached_property
        def handoffs(self) -> Handoffs:
            return Handoffs()

        @cached_property
        def context_variables(self) -> ContextVariables:
            return ContextVariables()

    return User


def _is_asked(reply_function: Any) -> bool:
    """Whether a user without a model may need it in a blocking chat; what it does not need is not copied either."""
    from autogen import ConversableAgent

    return reply_function is not ConversableAgent.generate_oai_reply and not inspect.iscoroutinefunction(reply_function)
