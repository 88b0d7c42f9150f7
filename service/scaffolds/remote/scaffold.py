"""Scaffold kind ``remote``: a sandbox of ours, driven over the API by a client's own loop (NEEDS C9)."""

from service.domain.agents import Driver, ScaffoldManifest, Surface
from service.domain.errors import Invalid
from service.scaffolds.undriven import Undriven


class RemoteScaffold(Undriven):
    driver = Driver.REMOTE
    surfaces = frozenset(Surface)

    def check(self, manifest: ScaffoldManifest) -> None:
        given = [n for n in ("argv", "env", "files") if getattr(manifest, n)]
        if given:  # a kit is allowed: tools that the remote loop runs
            raise Invalid("not_for_this_kind", f"a scaffold of kind 'remote' takes no {given[0]}", fields=given)
