"""Requests through the gateway: what arrives at the provider, what the client gets, what the ledger says."""



from tests.integration.gateway.bench import GateBench, messages


async def test_a_message_passes_and_is_written_down(bench: GateBench) -> None:
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post("/anthropic/v1/messages?beta=true", json=messages())
    assert answer.status_code == 200, answer.text
    assert answer.json()["content"][0]["text"].startswith("Just a text")
    (asked,) = bench.provider.requests()
    (row,) = await bench.ledger_of(grant)
    assert (row.n, row.state, row.status, row.error, row.usage_known) == (1, "finished", 200, None, True)
    sent = asked.usage
    assert sent is not None
    assert (row.input_tokens, row.output_tokens) == (sent.input_tokens, sent.output_tokens)
    assert row.cost_usd is not None
    assert row.cost_usd > 0
