"""Which model a specification gives, and what a wrong one is told."""

import subprocess
import sys

import pytest
from pydantic_ai.models import ModelRequestParameters

from ramet.demo.errors import ModelKeyMissing, ModelUnavailable, ModelUnknown
from ramet.demo.model_choice import choose_model
from ramet.demo.offline_model import OfflineModel
from ramet.errors import RametError


@pytest.mark.parametrize("spec", [None, "", "offline", " offline "])
def test_without_a_name_the_offline_rules_are_chosen(spec: str | None) -> None:
    model = choose_model(spec, {})
    assert isinstance(model, OfflineModel)
    assert (model.model_name, model.system) == ("offline", "ramet")


@pytest.mark.parametrize(
    ("spec", "variable", "system"),
    [
        ("openai:gpt-x", "OPENAI_API_KEY", "openai"),
        ("openai-chat:gpt-x", "OPENAI_API_KEY", "openai"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY", "anthropic"),
    ],
)
def test_a_provider_takes_its_key_from_the_environment_given(
    monkeypatch: pytest.MonkeyPatch, spec: str, variable: str, system: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    model = choose_model(spec, {variable: "secret"})
    assert (model.model_name, model.system) == (spec.partition(":")[2], system)


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:gpt-x", "OPENAI_API_KEY"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY"),
        ("deepseek:deepseek-x", "DEEPSEEK_API_KEY"),
    ],
)
def test_a_missing_key_is_one_sentence_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, spec: str, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelKeyMissing) as caught:
        choose_model(spec, {variable: ""})
    assert str(caught.value) == (
        f"The model {spec!r} needs {variable} in the environment: set it, or use the offline model."
    )
    assert isinstance(caught.value, RametError)


@pytest.mark.parametrize("env", [{}, {"OPENAI_API_KEY": "secret"}])
def test_a_compatible_server_is_named_by_its_address_and_needs_no_key(env: dict[str, str]) -> None:
    model = choose_model("llama-3@http://127.0.0.1:9/v1", env)
    assert model.model_name == "llama-3"
    assert str(getattr(model, "base_url", "")).startswith("http://127.0.0.1:9/v1")


@pytest.mark.parametrize("spec", ["gpt-x", "openai:", ":x", "nobody:x", "@http://127.0.0.1:9/v1"])
def test_an_unknown_model_is_told_the_known_forms(spec: str) -> None:
    with pytest.raises(ModelUnknown, match=r"write .*NAME|write NAME@"):
        choose_model(spec, {"OPENAI_API_KEY": "secret"})


@pytest.mark.parametrize(
    ("spec", "module", "extra"),
    [
        ("openai:x", "pydantic_ai.providers.openai", "openai"),
        ("x@http://127.0.0.1:9/v1", "pydantic_ai.providers.openai", "openai"),
        ("anthropic:x", "pydantic_ai.providers.anthropic", "anthropic"),
    ],
)
def test_a_provider_that_is_not_installed_is_one_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch, spec: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    env = {"OPENAI_API_KEY": "secret", "ANTHROPIC_API_KEY": "secret"}
    with pytest.raises(ModelUnavailable) as caught:
        choose_model(spec, env)
    command = f'pip install "pydantic-ai-slim[{extra}]"'
    assert str(caught.value).endswith(f"needs a package that is not installed: {command}")


def test_no_provider_is_imported_unless_it_is_named() -> None:
    code = (
        "import sys; from ramet.demo.model_choice import choose_model; choose_model(None, {});"
        "print([m for m in ('openai', 'anthropic', 'groq') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"


async def test_the_offline_model_waits_with_the_sleep_it_is_given() -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    model = choose_model(None, {}, sleep=note)
    async with model.request_stream([], None, ModelRequestParameters()) as stream:
        async for _ in stream:
            pass
    assert set(waits) == {0.012}
    assert len(waits) > 10
