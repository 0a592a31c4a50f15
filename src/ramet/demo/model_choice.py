"""Turns what the user wrote after `--model` into a model, or says in one sentence why not."""

import re
from collections.abc import Mapping

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model

from ramet.demo.errors import ModelKeyMissing, ModelUnavailable, ModelUnknown
from ramet.demo.offline_model import OfflineModel, Sleep

FORMS = "offline, openai:NAME, anthropic:NAME, PROVIDER:NAME or NAME@http://HOST:PORT/v1"
_NO_KEY = "not-needed"
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]{3,})`")
_OPENAI = ("openai", "openai-chat", "openai-responses")


def choose_model(spec: str | None, env: Mapping[str, str], *, sleep: Sleep | None = None) -> Model:
    """The model that a specification names; the offline rules when there is none.

    No provider's module is imported unless it is named, and nothing is sent.

    Args:
        spec: `offline`, `provider:name`, or `name@http://host:port/v1` for a server that speaks the
            OpenAI protocol.
        env: The environment, for keys.
        sleep: What the offline model waits with between its words.

    Raises:
        ModelKeyMissing: The provider's key is not in the environment.
        ModelUnavailable: The provider's package is not installed.
        ModelUnknown: The specification has none of the known forms, or names no known provider.
    """
    wanted = (spec or "offline").strip()
    if wanted == "offline":
        return OfflineModel(sleep=sleep)
    name, at, url = wanted.partition("@")
    if at and url.startswith(("http://", "https://")):
        return _compatible(name, url, env)
    provider, colon, name = wanted.partition(":")
    if not (colon and provider and name):
        raise ModelUnknown(f"{wanted!r} is not a model; write {FORMS}.")
    return _of_provider(wanted, provider, env)


def _compatible(name: str, url: str, env: Mapping[str, str]) -> Model:
    """A model of a server that speaks OpenAI's protocol, which often needs no key."""
    if not name:
        raise ModelUnknown(f"There is no model name before '@{url}'; write NAME@{url}.")
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError as error:
        raise _not_installed(name, "openai") from error
    key = env.get("OPENAI_API_KEY") or _NO_KEY
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key=key))


def _of_provider(spec: str, provider: str, env: Mapping[str, str]) -> Model:
    """A model of a provider that pydantic-ai knows; two of them take their key from `env`."""
    try:
        if provider in _OPENAI:
            key = _key(spec, "OPENAI_API_KEY", env)
            from pydantic_ai.providers.openai import OpenAIProvider

            return infer_model(spec, lambda _: OpenAIProvider(api_key=key))
        if provider == "anthropic":
            key = _key(spec, "ANTHROPIC_API_KEY", env)
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return infer_model(spec, lambda _: AnthropicProvider(api_key=key))
        return infer_model(spec)
    except ImportError as error:
        extra = "openai" if provider in _OPENAI else provider
        raise _not_installed(spec, extra) from error
    except UserError as error:
        raise _refused(spec, error) from error


def _key(spec: str, variable: str, env: Mapping[str, str]) -> str:
    key = env.get(variable)
    if not key:
        raise _key_missing(spec, variable)
    return key


def _key_missing(spec: str, variable: str) -> ModelKeyMissing:
    return ModelKeyMissing(
        f"The model {spec!r} needs {variable} in the environment: set it, or use the offline model."
    )


def _refused(spec: str, error: UserError) -> ModelKeyMissing | ModelUnknown:
    """What the library says in a paragraph, as one sentence."""
    variable = _VARIABLE.search(str(error))
    if variable is not None:
        return _key_missing(spec, variable[1])
    return ModelUnknown(f"{spec!r} is not a model that is known; write {FORMS}.")


def _not_installed(spec: str, extra: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model {spec!r} needs a package that is not installed: "
        f'pip install "pydantic-ai-slim[{extra}]"'
    )
