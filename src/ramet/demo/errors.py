"""What can go wrong in the demo, each a thing that its user can do something about."""

from ramet.errors import ConfigurationError, RametError


class ModelKeyMissing(ConfigurationError):
    """The model's provider needs a key that is not set; the message names the variable."""


class ModelUnavailable(ConfigurationError):
    """The model's provider is not installed; the message holds the command that installs it."""


class ModelUnknown(ConfigurationError, ValueError):
    """No model has that name, or it is not written in a form that is known."""


class PassageUnknown(RametError, LookupError):
    """The corpus has no passage of that id; ids come from a search."""


class FolderRefused(RametError):
    """A path or file that the folder's inspection does not read; the message says why."""
