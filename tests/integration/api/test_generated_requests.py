"""Generated requests against the served schema, with two projects: no 5xx, answers as published, no foreign row.

The ids of both projects are put in the place of generated ones, so that requests reach rows, own and foreign.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import checks as general_checks
from schemathesis.specs.openapi import checks as openapi_checks

from service.api.rate_limits import Rates
from service.api.state import ApiState
from service.store import credentials
from service.store.sealed_box import OpeningKey
from tests.api.helpers import Tenant, file_entry
from tests.api.test_tenancy import everything

SEED = 20261130
EXAMPLES = 5
REACHED = 0.5
"""Least share of the operations that must have answered with success: else nothing was looked at."""
_PUBLISHED = cast("Any", openapi_checks)
CHECKS: list[Any] = [
    cast("Any", general_checks).not_a_server_error,
    _PUBLISHED.status_code_conformance,
    _PUBLISHED.content_type_conformance,
    _PUBLISHED.response_schema_conformance,
]
LEFT_OUT = {"wait_s": "would only wait", "fields": "leaves members out that the schema requires"}
"""Query parameters that are not generated."""
BOUNDLESS = Rates(**dict.fromkeys(Rates.__dataclass_fields__, 10**6))
"""How often to call is tested elsewhere."""


@pytest.fixture
def state(state: ApiState) -> ApiState:
    return replace(state, config=replace(state.config, rates=BOUNDLESS))


@pytest.mark.fault(58)
async def test_generated_requests(tenant: Tenant, other: Tenant, url: str) -> None:
    async with tenant.state.db.transaction() as tx:
        key = OpeningKey(bytes(range(32)))  # as if a gateway had started once: credentials can be brought
        await credentials.register_key(tx, key.id, key.public)
    own, foreign = await everything(tenant), await everything(other)
    await tenant.seal(await tenant.start((await tenant.run())["id"]), [file_entry("output/b", b"b")])
    secrets = {v for k, v in foreign.items() if "_id" in k and k != "host_id"} | {other.project_id, other.secret}
    await asyncio.to_thread(_try_all, url, _Trial(tenant.bearer, own, foreign, secrets))


@dataclass(frozen=True)
class _Trial:
    """One operation, tried with generated requests."""

    headers: dict[str, str]
    own: dict[str, str]
    foreign: dict[str, str]
    secrets: set[str]
    answered: set[str] = field(default_factory=set[str])
    """Operations that answered with success."""
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))

    def attempt(self, case: Any) -> None:
        _aim(case, self.dice, self.own, self.foreign)
        response = case.call(headers=self.headers, timeout=20)
        leaked = [s for s in self.secrets if s.encode() in response.content]
        assert not leaked, f"foreign {leaked} in the answer to {case.as_curl_command()}"
        case.validate_response(response, checks=CHECKS)
        if response.status_code < 300:
            self.answered.add(case.operation.label)


def _try_all(url: str, trial: _Trial) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    problems: list[str] = []
    operations: list[Any] = [found.ok() for found in cast("Any", schema).get_all_operations()]
    for operation in sorted(operations, key=lambda o: o.label.startswith("DELETE")):  # while there still is something
        try:
            _generate(operation, trial.attempt)
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - all are tried; what failed is told at the end
            problems += [f"{operation.label}: {leaf}" for leaf in _leaves(error)]
    assert not problems, "\n\n".join(problems)
    assert len(operations) >= 60
    assert len(trial.answered) >= len(operations) * REACHED, sorted({o.label for o in operations} - trial.answered)


def _leaves(error: BaseException) -> list[str]:
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    if inner:
        return [str(error), *(text for e in inner for text in _leaves(e))]
    return [f"{type(error).__name__} {error}"]


def _generate(operation: Any, attempt: Callable[[Any], None]) -> None:
    generated = given(operation.as_strategy())(attempt)
    bounded = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    seeded(SEED)(bounded(generated))()


def _aim(case: Any, dice: random.Random, own: dict[str, str], foreign: dict[str, str]) -> None:
    """Put known ids into the request, and take out what would only cost time."""
    for name in list(case.path_parameters or {}):
        source = dice.choice([own, own, own, foreign, None])
        if source is not None and name in source:
            case.path_parameters[name] = source[name]
    for name in LEFT_OUT:
        case.query.pop(name, None) if case.query else None
    if case.query and "ids" in case.query:
        case.query["ids"] = ",".join(dice.choice([own, foreign])["run_id"] for _ in range(3))
