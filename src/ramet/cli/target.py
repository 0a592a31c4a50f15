"""Finds the application that a command line names as `module:app`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

from ramet.errors import ConfigurationError
from ramet.web.server import Application


def load_application(target: str) -> Application:
    """Import the application named by `module:attribute`, from the working directory too.

    Raises:
        ConfigurationError: There is no such thing, or it cannot be imported.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"{target!r} does not name an application: write module:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: object = _imported(module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"The module {module_name!r} has no {attribute!r}")
        found = getattr(found, name)
    if isinstance(found, type):
        raise ConfigurationError(
            f"{target} is a class: serve an instance, such as app = ramet.App(agents=[…])"
        )
    if not _is_application(found):
        raise ConfigurationError(f"{target} is no application: a {type(found).__name__}")
    return found


def _imported(module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"There is no module {error.name!r}; run the command in the folder that holds it"
            ) from error
        raise ConfigurationError(f"The module {module_name!r} needs another: {error}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"The module {module_name!r} cannot be imported: {error}"
        ) from error


def _is_application(found: object) -> TypeGuard[Application]:
    return callable(found)
