"""`python -m ramet.cli` is the command `ramet`."""

from ramet.cli.main import main

main(prog_name="ramet")
