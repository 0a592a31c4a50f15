"""The example that `ramet demo` serves: an assistant that uses other agents as its tools."""
