"""The model catalogue, gateway services and breakers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.catalogue import Breaker, CatalogueModel, CredentialState, GatewayService
from workstead.models import Operation


class AsyncModels:
    """``/v1/models``: what runs may be given to think with. Changes need the scope ``models:admin``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, spec: Mapping[str, Any]) -> CatalogueModel:
        """Add a model, or find the same one. Raises Conflict (``model_exists``), Invalid, Problem."""
        return CatalogueModel.model_validate(await self._http.json("POST", "/v1/models", json=dict(spec)))

    async def get(self, model_id: str) -> CatalogueModel:
        return CatalogueModel.model_validate(await self._http.json("GET", _path("models", model_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[CatalogueModel]:
        """Yield models; ``filters`` as the API has them (name, provider, dialect, vendor, family)."""
        async for item in pages(self._http, "/v1/models", filters or {}, limit):
            yield CatalogueModel.model_validate(item)

    async def shipped(self) -> Sequence[dict[str, Any]]:
        """Return the public models that the service knows: specs for :meth:`create`."""
        found: dict[str, Any] = await self._http.json("GET", "/v1/model-catalogue")
        return [dict(spec) for spec in found["data"]]

    async def replace(self, model_id: str, spec: Mapping[str, Any]) -> CatalogueModel:
        """Replace all but the name. With another ``base_url`` the credential is forgotten."""
        return CatalogueModel.model_validate(
            await self._http.json("PUT", _path("models", model_id), json=dict(spec))
        )  # fmt: skip

    async def delete(self, model_id: str) -> None:
        """Delete a model that nothing names. Raises Conflict (``model_in_use``)."""
        await self._http.request("DELETE", _path("models", model_id))

    async def put_credential(self, model_id: str, secret: str, *, purpose: str = "model") -> CredentialState:
        """Bring or replace its key; ``purpose`` ``judge``: never for agents. Raises Unavailable (no gateway yet)."""
        body = {"secret": secret, "purpose": purpose}
        return CredentialState.model_validate(
            await self._http.json("PUT", _path("models", model_id, "credential"), json=body)
        )  # fmt: skip

    async def credential(self, model_id: str) -> CredentialState:
        """Return that there is a key. Raises NotFound where there is none."""
        return CredentialState.model_validate(await self._http.json("GET", _path("models", model_id, "credential")))

    async def remove_credential(self, model_id: str) -> None:
        await self._http.request("DELETE", _path("models", model_id, "credential"))

    async def check(self, model_id: str) -> Operation:
        """Ask the model what it can do; wait with ``client.operations.wait``, the result says what worked."""
        return Operation.model_validate(await self._http.json("POST", _path("models", model_id, "check")))


class AsyncServices:
    """``/v1/services``: further upstreams whose keys stay outside of sandboxes."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, spec: Mapping[str, Any]) -> GatewayService:
        """Add a service, or find the same one. Raises Conflict (``service_exists``), Invalid, Problem."""
        return GatewayService.model_validate(await self._http.json("POST", "/v1/services", json=dict(spec)))

    async def get(self, service_id: str) -> GatewayService:
        return GatewayService.model_validate(await self._http.json("GET", _path("services", service_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[GatewayService]:
        async for item in pages(self._http, "/v1/services", filters or {}, limit):
            yield GatewayService.model_validate(item)

    async def replace(self, service_id: str, spec: Mapping[str, Any]) -> GatewayService:
        """Replace all but the name. With another ``base_url`` the credential is forgotten."""
        return GatewayService.model_validate(
            await self._http.json("PUT", _path("services", service_id), json=dict(spec))
        )  # fmt: skip

    async def delete(self, service_id: str) -> None:
        await self._http.request("DELETE", _path("services", service_id))

    async def put_credential(self, service_id: str, secret: str) -> CredentialState:
        """Bring or replace its key. Raises Unavailable (no gateway yet)."""
        return CredentialState.model_validate(
            await self._http.json("PUT", _path("services", service_id, "credential"), json={"secret": secret})
        )  # fmt: skip

    async def credential(self, service_id: str) -> CredentialState:
        return CredentialState.model_validate(await self._http.json("GET", _path("services", service_id, "credential")))

    async def remove_credential(self, service_id: str) -> None:
        await self._http.request("DELETE", _path("services", service_id, "credential"))


class AsyncBreakers:
    """``/v1/breakers``: which ways to models are shut."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def list(self) -> Sequence[Breaker]:
        """Return those that ever did something."""
        found: dict[str, Any] = await self._http.json("GET", "/v1/breakers")
        return [Breaker.model_validate(item) for item in found["data"]]

    async def get(self, model_id: str) -> Breaker:
        return Breaker.model_validate(await self._http.json("GET", _path("breakers", model_id)))

    async def set(self, model_id: str, state: str, *, reason: str = "") -> Breaker:
        """Shut the way to a model (``open``) until it is ``closed`` by hand, or close it."""
        body = {"state": state, "reason": reason}
        return Breaker.model_validate(await self._http.json("PUT", _path("breakers", model_id), json=body))


def _path(noun: str, *parts: str) -> str:
    return "/".join([f"/v1/{noun}", *(quote(part, safe="") for part in parts)])
