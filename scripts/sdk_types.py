"""Holds requests to the types of the providers' own SDKs.

    sdk_types.py FORM FILE…         each line of each file is a request
    sdk_types.py FORM --list LIST   the names of the files stand in LIST, each ended by a zero byte

FORM is openai, responses or anthropic, as the program prints them, or whole bodies with a model.
A request is accepted where pydantic finds that it is of the SDK's type for the body of a call, with
no member that the type does not have. The exit code is 1 where one is not, and standard output says which and why.
"""

import json
import sys
import typing
import warnings

# The types have lists as `Iterable`, which pydantic checks only when somebody reads them.
typing.Iterable = typing.List

import pydantic  # noqa: E402
from pydantic import ConfigDict, TypeAdapter  # noqa: E402
from pydantic_core import core_schema  # noqa: E402
from typing_extensions import is_typeddict  # noqa: E402

# Members that OpenAI's relatives have, and that are given back to them: no type of OpenAI's has them.
# `name` of a result is one that OpenAI had itself.
RELATIVES = {
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thought_signature",
    "extra_content",
    "prefix",
    "annotations",
}


def bodies(form):
    """The types of a body, and a body around what the program prints."""
    if form == "openai":
        from openai.types.chat import completion_create_params as chat

        kinds = [chat.CompletionCreateParamsNonStreaming]
        return kinds, lambda request: {"model": "m", "messages": request}
    if form == "responses":
        from openai.types.responses import response_create_params as responses

        kinds = [responses.ResponseCreateParamsNonStreaming]
        return kinds, lambda request: {"model": "m", "input": request}
    from anthropic.types import message_create_params as messages
    from anthropic.types.beta import message_create_params as beta

    # What only a beta has, changes of tools for example, is of the types of betas.
    kinds = [messages.MessageCreateParamsNonStreaming, beta.MessageCreateParamsNonStreaming]
    return kinds, lambda request: {"model": "m", "max_tokens": 1, **request}


def instance(kind, _source, _handler):
    """The schema that takes an object of this class, and no dictionary."""
    return core_schema.is_instance_schema(kind)


def forbid_others():
    """Lets each dictionary of the SDKs take the members that it names, and no others."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("openai", "anthropic") and ".types" in name:
            for one in list(vars(module).values()):
                if typing.is_typeddict(one) or is_typeddict(one):
                    one.__pydantic_config__ = ConfigDict(
                        extra="forbid", strict=True, arbitrary_types_allowed=True
                    )
                elif isinstance(one, type) and issubclass(one, pydantic.BaseModel):
                    # Some types take the objects of answers too. A request as JSON has none.
                    one.__get_pydantic_core_schema__ = classmethod(instance)


def without_relatives(messages):
    """Chat messages without what only relatives of OpenAI read."""
    kept = []
    for message in messages:
        message = {key: value for key, value in message.items() if key not in RELATIVES}
        if message.get("role") == "tool":
            message.pop("name", None)
        for call in message.get("tool_calls") or []:
            for member in RELATIVES:
                call.pop(member, None)
        kept.append(message)
    return kept


def reasons(error):
    """What is wrong with a request: of all alternatives the first errors that are no wrong type."""
    found = error.errors(include_url=False, include_input=False)
    telling = [wrong for wrong in found if wrong["type"] != "literal_error"] or found

    def place(wrong):
        return ".".join(str(step) for step in wrong["loc"] if "[" not in str(step))

    places = (place(wrong) + ": " + wrong["msg"] for wrong in telling)
    return list(dict.fromkeys(places))[:4]


def main():
    form, files = sys.argv[1], sys.argv[2:]
    if files[:1] == ["--list"]:
        with open(files[1], encoding="utf-8") as names:
            files = [name for name in names.read().split("\0") if name]
    kinds, whole = bodies(form)
    # Of a type that takes any member nothing can be forbidden.
    warnings.simplefilter("ignore")
    forbid_others()
    adapters = [TypeAdapter(kind) for kind in kinds]
    checked = refused = 0
    for name in files:
        with open(name, encoding="utf-8") as file:
            requests = [json.loads(line) for line in file if line.strip()]
        for request in requests:
            is_body = isinstance(request, dict) and "model" in request
            if form == "openai" and is_body:
                request["messages"] = without_relatives(request["messages"])
            elif form == "openai":
                request = without_relatives(request)
            checked += 1
            wrong = None
            for adapter in adapters:
                try:
                    adapter.validate_python(request if is_body else whole(request))
                    break
                except pydantic.ValidationError as error:
                    wrong = wrong or error
            else:
                refused += 1
                if refused <= 20:
                    print(f"{name}: " + "; ".join(reasons(wrong)))
    print(f"{form}: {checked} requests, {refused} refused")
    sys.exit(1 if refused else 0)


main()
