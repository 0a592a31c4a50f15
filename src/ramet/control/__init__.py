"""What an operator asks about a data directory, answered by its host or from its files."""
