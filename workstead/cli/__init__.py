"""The ``workstead`` command."""

from workstead.cli.app import main

__all__ = ["main"]
