"""Problems: bounded, printable, with the request's id."""

import json

import pytest

from service.api.problems import clean, expected_problem, validation_problem, with_request_id
from service.domain.errors import Invalid, Unauthenticated, Unavailable


@pytest.mark.fault(98)
def test_control_characters_are_spelled_out() -> None:
    assert clean("a\r\nb\x1b[2J\u2028") == "a\\u000d\\u000ab\\u001b[2J\\u2028"


@pytest.mark.fault(100)
def test_long_text_is_cut_with_a_mark() -> None:
    assert clean("x" * 1_000_000) == "x" * 1000 + " …[truncated]"


def test_expected_errors_keep_their_fields_and_cannot_replace_ours() -> None:
    body = json.loads(bytes(expected_problem(Invalid("missing_blobs", "2 files", missing=["a"], status=200)).body))
    assert body["type"] == "urn:workstead:problem:missing_blobs"
    assert (body["status"], body["missing"], body["title"]) == (422, ["a"], "Unprocessable Content")


def test_headers_by_status() -> None:
    assert "Bearer" in expected_problem(Unauthenticated("x")).headers["www-authenticate"]
    assert expected_problem(Unavailable("x")).headers["retry-after"] == "2"


def test_validation_errors_point_at_the_place() -> None:
    errors = [{"loc": ("body", "limits", "a/b~c"), "type": "missing", "msg": "Field required", "input": "secret"}]
    body = json.loads(bytes(validation_problem(errors * 80).body))
    assert body["errors"][0] == {"pointer": "#/limits/a~1b~0c", "type": "missing", "detail": "Field required"}
    assert (len(body["errors"]), body["error_count"]) == (50, 80)
    assert "secret" not in json.dumps(body)


def test_request_id_is_added_to_the_rendered_problem() -> None:
    body = with_request_id(bytes(expected_problem(Invalid("x")).body), 'a"b')
    assert json.loads(body)["request_id"] == 'a"b'
