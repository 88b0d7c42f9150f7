"""Many small blobs in one request."""

import asyncio
import hashlib
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.helpers import Tenant

CONTENTS = [b"%d of " % n + b"x" * 16_000 for n in range(20)]
DIGESTS = [hashlib.sha256(data).hexdigest() for data in CONTENTS]


def packed(*contents: bytes) -> bytes:
    return b"".join(f"{hashlib.sha256(data).hexdigest()} {len(data)}\n".encode() + data for data in contents)


async def missing(tenant: Tenant, *digests: str) -> list[str]:
    return (await tenant.post("/v1/blobs:missing", {"digests": digests}, 200))["missing"]


async def batch(tenant: Tenant, body: bytes, **headers: str) -> httpx.Response:
    return await tenant.client.post("/v1/blobs:batch", content=body, headers=headers)


async def test_a_batch_is_as_many_uploads(tenant: Tenant, other: Tenant) -> None:
    answer = await batch(tenant, packed(*CONTENTS[:3], CONTENTS[0]))
    assert answer.status_code == 201
    assert [blob["sha256"] for blob in answer.json()["data"]] == DIGESTS[:3]
    assert await missing(tenant, *DIGESTS[:4]) == DIGESTS[3:4]
    assert await missing(other, *DIGESTS[:3]) == DIGESTS[:3]
    assert (await tenant.client.get(f"/v1/blobs/{DIGESTS[1]}")).content == CONTENTS[1]
    assert (await batch(tenant, packed(*CONTENTS[:4]))).status_code == 201
    assert (await batch(tenant, b"")).json() == {"data": []}


async def test_one_that_is_wrong_refuses_all(tenant: Tenant) -> None:
    wrong = await batch(tenant, packed(*CONTENTS[:2]) + b"0" * 64 + b" 1\nx")
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:workstead:problem:wrong_digest")
    cut = await batch(tenant, packed(*CONTENTS[:2])[:-1])
    assert (cut.status_code, cut.json()["type"]) == (422, "urn:workstead:problem:bad_batch")
    large = await batch(tenant, packed(b"y" * (1 << 20)))
    assert large.status_code == 413
    forbidden = await batch(tenant, packed(CONTENTS[0]), **await tenant.token("runs:read"))
    assert forbidden.status_code == 403
    assert await missing(tenant, *DIGESTS[:2]) == DIGESTS[:2]


@pytest.mark.fault(123)
async def test_a_batch_aborted_at_each_64_kb_leaves_nothing_and_can_be_sent_again(tenant: Tenant, url: str) -> None:
    body = packed(*CONTENTS)
    where = urlsplit(url)
    head = (
        f"POST /v1/blobs:batch HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {tenant.secret}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    for sent in range(0, len(body), 65_536):
        _, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(head + body[:sent])
        await writer.drain()
        writer.transport.abort()
    assert await missing(tenant, *DIGESTS) == DIGESTS
    assert not [p for p in tenant.state.blobs.root.glob("??/*") if p.is_file()]
    assert (await batch(tenant, body)).status_code == 201
    assert await missing(tenant, *DIGESTS) == []
