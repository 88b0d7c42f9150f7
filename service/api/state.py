"""What the API is made from. Built once by wiring; every resource finds it at ``request.app.state.api``."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from service.api.bridge import BridgeClient
from service.api.rate_limits import Limiter, Rates
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.notifications import Notifications
from service.store.poll import Polls
from service.store.secret_box import SecretBox


@dataclass(frozen=True, slots=True)
class ApiConfig:
    public_url: str = "http://127.0.0.1:8040"
    """URL that browsers use; its origin is the only one that may send our cookie with an unsafe method."""
    cors_origins: tuple[str, ...] = ()
    """Foreign origins that may call the API from a browser with a bearer token (never with a cookie)."""
    preview_origin: str | None = None
    """Origin that previews of deliverables have for themselves; None: they come under ours, in a sandbox."""
    max_json_bytes: int = 4 << 20
    """Largest body of any request but a blob upload, in bytes."""
    max_blob_bytes: int = 8 << 30
    """Largest blob, in bytes."""
    max_archive_bytes: int = 8 << 30
    """Largest archive of a task, packed and unpacked, in bytes."""
    max_archives: int = 8
    """Most archives that this process receives at once."""
    max_reports: int = 4
    """Most reports and table files that this process works out at once."""
    private_webhooks: bool = False
    """Webhooks may be http and go to private addresses: tests and development."""
    private_upstreams: bool = False
    """Models and services of every project may be http and at private addresses, not only an operator's."""
    max_streams: int = 500
    """Most event streams and long polls at once in this process."""
    rates: Rates = field(default_factory=Rates)
    """How often one token may call."""

    @property
    def origin(self) -> str:
        url = urlsplit(self.public_url)
        return f"{url.scheme}://{url.netloc}"

    @property
    def secure_cookie(self) -> bool:
        """Secure except on a loopback http address, where browsers differ on what they accept (see cookies.py)."""
        url = urlsplit(self.public_url)
        return url.scheme == "https" or not _is_loopback(url.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _no_crash(_point: str) -> None:
    return None


@dataclass(slots=True)
class ApiState:
    db: Database
    notifications: Notifications
    blobs: BlobStore
    secrets: SecretBox = field(kw_only=True)
    """Seals what must be readable again: webhooks' secrets."""
    config: ApiConfig = field(default_factory=ApiConfig)
    reach: Callable[[str], None] = _no_crash
    """Crash hook of the crash tests: called with the name of a point that was passed."""
    bridge: BridgeClient = field(default_factory=BridgeClient)
    """The way to the workers' internal API."""
    open_archives: int = 0
    open_reports: int = 0
    open_streams: int = 0
    streams_of: Counter[str] = field(default_factory=Counter[str])
    """Token id to its open event streams and long polls."""
    limiter: Limiter = field(init=False)
    polls: Polls = field(init=False)

    def __post_init__(self) -> None:
        self.limiter = Limiter(self.config.rates)
        self.polls = Polls(self.db)


def api_state(connection: HTTPConnection) -> ApiState:
    state: object = connection.app.state.api
    assert isinstance(state, ApiState)
    return state
