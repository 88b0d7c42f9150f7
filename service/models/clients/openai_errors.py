"""The OpenAI SDK pointed at the gateway, and what its errors mean."""

from collections.abc import Generator
from contextlib import contextmanager

import openai

from service.models.clients.reaching import (
    ADDRESS,
    TIMEOUT_S,
    answer_cut,
    connection_error,
    http_client,
    refused,
    transport_errors,
)
from service.models.messages import Reach


def sdk_for(reach: Reach) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        api_key=reach.token, base_url=f"{ADDRESS}/v1", max_retries=0, timeout=TIMEOUT_S, http_client=http_client(reach)
    )


@contextmanager
def sdk_errors() -> Generator[None]:
    """Raise ModelRefused and GatewayAway in place of the SDK's errors."""
    with transport_errors():
        try:
            yield
        except openai.APIConnectionError as error:
            raise connection_error(error) from error
        except openai.APIStatusError as error:
            raise refused(error.status_code, error.body, error.message) from error
        except openai.APIError as error:  # said inside the stream
            raise answer_cut(error) from error
