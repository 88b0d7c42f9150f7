"""Kinds of operations. A dotted path is imported when its kind is first used."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

from service.lifecycle.operations.contract import Handler


@dataclass(frozen=True, slots=True)
class Kind:
    path: str
    noun: str
    """What it is about: who may read (write) these sees (cancels) it."""


KINDS = {
    "image_import": Kind("service.lifecycle.operations.image_import.handler:run", "agents"),
    "benchmark_import": Kind("service.lifecycle.operations.benchmark_import:run", "benchmarks"),
    "model_check": Kind("service.lifecycle.operations.model_check:run", "agents"),
    "client_facts": Kind("service.lifecycle.operations.client_facts:run", "tasks"),
    "judge_probe": Kind("service.lifecycle.operations.judge_probe:run", "gradings"),
    "model_ratings": Kind("service.lifecycle.operations.model_ratings:run", "gradings"),
    "forecasts": Kind("service.lifecycle.operations.forecasts:run", "runs"),
    "annotations": Kind("service.lifecycle.operations.annotations:run", "runs"),
    "embeddings": Kind("service.lifecycle.operations.embeddings:run", "benchmarks"),
    "preflight": Kind("service.lifecycle.operations.preflight.handler:run", "runs"),
    "film": Kind("service.lifecycle.operations.film:run", "runs"),
    "controls": Kind("service.lifecycle.operations.controls:run", "gradings"),
    "export": Kind("service.lifecycle.operations.export:run", "reports"),
    "conformance": Kind("service.lifecycle.operations.conformance.handler:run", "agents"),
}


@cache
def handler_for(kind: str) -> Handler | None:
    """Return the handler of this kind, or None where this installation has none."""
    found = KINDS.get(kind)
    if found is None:
        return None
    module, _, name = found.path.partition(":")
    return cast(Handler, getattr(import_module(module), name))
