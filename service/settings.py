"""The only reader of the environment. Names: ``WORKSTEAD_`` + field, nested by ``__`` (``WORKSTEAD_API__PORT``)."""

import os
import re
import secrets
import socket
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

_KEYS = "WORKSTEAD_MODELS__CREDENTIALS"


class RateSettings(BaseModel):
    """Per token, in each API process: calls per second, and how many at once."""

    read_per_s: float = Field(default=50, gt=0)
    """Reads per second and token; a 304 counts a tenth."""
    read_burst: int = Field(default=200, ge=1)
    """Most reads at once per token."""
    write_per_s: float = Field(default=10, gt=0)
    """Writes per second and token."""
    write_burst: int = Field(default=200, ge=1)
    """Most writes at once per token."""
    upload_per_s: float = Field(default=500, gt=0)
    """Calls per second and token that bring blobs, tasks and benchmarks."""
    upload_burst: int = Field(default=2000, ge=1)
    """Most such calls at once per token."""
    failures_per_s: float = Field(default=1, gt=0)
    """Wrong credentials per second and peer address."""
    failures_burst: int = Field(default=30, ge=1)
    """Most wrong credentials at once per peer address."""
    streams_per_token: int = Field(default=100, ge=1)
    """Most open event streams and long polls per token."""


class ApiSettings(BaseModel):
    host: str = "127.0.0.1"
    """Address that the API listens on."""
    port: int = Field(default=8040, ge=0, le=65535)
    """Port of the API; 0 takes a free one."""
    public_url: str | None = None
    """URL that browsers use; default: http://<host>:<port>."""
    cors_origins: list[str] = Field(default_factory=list[str])
    """Foreign origins that may call the API from a browser, with a bearer token."""
    preview_origin: str | None = Field(default=None, pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$")
    """Another name of this service, e.g. https://previews.example.net, that raters' browsers load what agents
    delivered from, and nothing else; default: previews come from ``public_url``, in a sandbox."""
    max_json_bytes: int = 4 << 20
    """Largest JSON request body, in bytes."""
    max_blob_bytes: int = 8 << 30
    """Largest blob, in bytes."""
    rates: RateSettings = Field(default_factory=RateSettings)
    max_archive_bytes: int = 8 << 30
    """Largest archive of a task, packed and unpacked, in bytes."""


class WorkerSettings(BaseModel):
    host_id: str = Field(default_factory=socket.gethostname)
    """Name of this Docker host; one worker process at a time holds it; default: the machine's name."""
    slots: int = Field(default=4, ge=1, le=512)
    """Most runs at once on this host."""
    docker_url: str | None = None
    """Engine address; default: the local socket."""
    warm_per_key: int = Field(default=1, ge=0, le=64)
    """Warm sandboxes kept ready per recently used (environment, kit, sizes)."""
    warm_total: int = Field(default=4, ge=0, le=256)
    """Most warm sandboxes in all; 0 turns them off."""
    runtimes: list[str] = Field(default_factory=lambda: ["runc", "runsc-planted"])
    """Runtimes to test at start and to offer if they pass; the first offered one is the default."""
    heartbeat_s: float = Field(default=5, gt=0)
    """Seconds between heartbeats."""
    stale_s: float = Field(default=30, gt=0)
    """Seconds without a heartbeat after which a host counts as stale."""
    lost_s: float = Field(default=180, gt=0)
    """Seconds without a heartbeat after which a host's attempts are fenced."""
    memory_fraction: float = Field(default=0.9, gt=0, le=64)
    """Part of the machine's memory that runs may be promised by their limits; above 1 it is promised more than once."""
    disk_watermark_fraction: float = Field(default=0.15, ge=0, lt=1)
    """No run is taken while less of a disk is free; see ``disk_watermark_bytes``."""
    disk_watermark_bytes: int = Field(default=10 << 30, ge=0)
    """The same in bytes; the smaller of the two holds."""
    disk_overcommit: float = Field(default=2.0, gt=0, le=1000)
    """How many times the free disk may be promised as quotas of workspaces."""
    images: dict[str, str] = Field(default_factory=dict[str, str])
    """Environment name to image id; default: the newest images built by sandbox_images/build.py."""


class GraderSettings(BaseModel):
    concurrency: int = Field(default=4, ge=1, le=256)
    """Most gradings with sandboxes at once in this process."""
    judgings: int = Field(default=64, ge=1, le=512)
    """Most gradings by judges at once in this process."""
    judge_calls: int = Field(default=32, ge=1, le=512)
    """Most calls to judges at once in this process; projects take turns, models keep their own bounds."""
    project_judge_calls: int | None = Field(default=None, ge=1, le=512)
    """Most of them for one project; default: all."""
    patience_s: float = Field(default=86_400, gt=0)
    """Seconds since its first start after which a grading that nobody can decide has failed: a judge away, no room."""
    operations: int = Field(default=2, ge=1, le=64)
    """Most operations (imports …) at once in this process."""
    provider_host: str = Field(default="127.0.0.1", pattern=r"^[A-Za-z0-9._-]{1,253}$")
    """Name or address of this process as the gateway reaches it, for the scripted provider of conformance runs; with
    another one than the default it listens on all addresses."""
    rooms: int = Field(default=4, ge=1, le=256)
    """Most sandboxes at once of this process, for methods that run or open what was delivered."""
    code_runtimes: list[str] = Field(default_factory=lambda: ["runsc-planted", "runc"], min_length=1)
    """Runtimes for running candidates' programs, best first; the first one that the engine offers is taken."""


class BridgeSettings(BaseModel):
    """The worker's internal API, that only the API process calls: remote driving and shells."""

    listen: str | None = Field(default=None, pattern=r"^[^\s:]+:[0-9]{1,5}$")
    """``address:port`` of a private network where workers listen for the API process, for the two on different machines
    or of different users; default: a Unix socket in the data directory. Not encrypted."""
    token: SecretStr | None = None
    """Secret that API and workers share; required with ``listen``."""

    @property
    def address(self) -> tuple[str, int] | None:
        """Raises ValueError in words where the token is missing."""
        if self.listen is None:
            return None
        if not self.secret:
            raise ValueError("WORKSTEAD_BRIDGE__LISTEN needs WORKSTEAD_BRIDGE__TOKEN")
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    @property
    def secret(self) -> str:
        return "" if self.token is None else self.token.get_secret_value()


class WebhookSettings(BaseModel):
    allow_private: bool = False
    """Webhooks may be http and go to private addresses: for tests and development only."""
    concurrency: int = Field(default=16, ge=1, le=256)
    """Deliveries under way at once in an API process."""
    timeout_s: float = Field(default=10, gt=0, le=30)
    """Seconds that a receiver has, from the look-up of its name to its status."""
    max_tries: int = Field(default=10, ge=1, le=20)
    """Tries of one delivery before it is given up."""
    disable_after: int = Field(default=20, ge=1)
    """Failures in a row after which a webhook is disabled."""


class GatewaySettings(BaseModel):
    public_host: str = "127.0.0.1"
    """Address of the gateway's public side, where remote drivers ask models with their run tokens."""
    public_port: int | None = Field(default=None, ge=1, le=65535)
    """Port of the public side, e.g. 8042; default: there is none. Not encrypted: put a proxy before it."""
    max_body_bytes: int = Field(default=32 << 20, ge=1 << 10, le=1 << 30)
    """Largest body of a request to a model, in bytes."""
    stalled_s: float = Field(default=600, gt=0)
    """Seconds without a byte of an answer after which a provider counts as stalled."""
    replay_time_scale: float = Field(default=0, ge=0, le=100)
    """Of a recording's pauses, when a run is replayed: 0 = none, 1 = as they were."""
    connections_per_run: int = Field(default=256, ge=4, le=10_000)
    """Most connections at once from one sandbox to the gateway."""


class ModelSettings(BaseModel):
    allow_private: bool = False
    """Models and services of every project may be http and at private addresses; an operator's always may."""
    credentials_file: Path | None = None
    """TOML file with the operator's own keys: sections [model] and [judge], provider = "key" or {key, base_url, projects};
    mode 0600, read by the gateway only."""
    credentials: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    """The same for models by environment: WORKSTEAD_MODELS__CREDENTIALS__ANTHROPIC=…; for the project ``default``."""


class OtelSettings(BaseModel):
    """Traces of finished runs for a collector of OpenTelemetry's; the standard variables serve where ours are not set."""

    endpoint: str | None = Field(
        default_factory=lambda: os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None, pattern=r"^https?://[^\s]+$"
    )
    """OTLP/HTTP address, the part before ``/v1/traces``; default: OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent."""
    headers: SecretStr = Field(default_factory=lambda: SecretStr(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")))
    """Headers for the collector, ``name=value,name=value``; default: OTEL_EXPORTER_OTLP_HEADERS."""
    service_name: str = Field(
        default_factory=lambda: os.environ.get("OTEL_SERVICE_NAME") or "workstead", min_length=1, max_length=200
    )
    """What the collector calls this deployment; default: OTEL_SERVICE_NAME, else workstead."""
    capture_content: bool = False
    """Also the agents' messages and the arguments and results of tools, each up to 16 000 characters."""
    timeout_s: float = Field(default=10, gt=0, le=300)
    """Seconds that the collector has for a batch of spans."""

    def header_pairs(self) -> dict[str, str]:
        """Return the headers. Raises ValueError in words."""
        pairs: dict[str, str] = {}
        for entry in filter(None, (part.strip() for part in self.headers.get_secret_value().split(","))):
            name, equals, value = entry.partition("=")
            name, value = name.strip(), unquote(value.strip())
            if not equals or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not value.isprintable():
                raise ValueError("WORKSTEAD_OTEL__HEADERS: name=value,name=value")
            pairs[name] = value
        return pairs


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="WORKSTEAD_", env_nested_delimiter="__", extra="ignore")

    data_dir: Path = Field(
        default_factory=lambda: (
            Path("/var/lib/workstead") if os.geteuid() == 0 else Path.home() / ".local/share/workstead"
        )
    )
    """Everything durable that is not in PostgreSQL, and the embedded PostgreSQL itself; default: /var/lib/workstead as
    root, else ~/.local/share/workstead."""
    database_url: SecretStr | None = None
    """postgresql:// URL; without it ``serve`` runs the embedded PostgreSQL."""
    database_password_file: Path | None = None
    """File with the password that the URL leaves out, so that it is in no environment."""
    api: ApiSettings = Field(default_factory=ApiSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    grader: GraderSettings = Field(default_factory=GraderSettings)
    webhooks: WebhookSettings = Field(default_factory=WebhookSettings)
    models: ModelSettings = Field(default_factory=ModelSettings)
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)
    bridge: BridgeSettings = Field(default_factory=BridgeSettings)
    otel: OtelSettings = Field(default_factory=OtelSettings)
    log_level: str = "INFO"
    """Least serious log lines that are written: DEBUG, INFO, WARNING, ERROR."""
    crash_tests: bool = False
    """For crash tests only: obey the file ``crash-point`` in the data directory."""

    def require_database_url(self) -> str:
        """Return the database URL as psycopg takes it. Raises ValueError in words if there is none."""
        if self.database_url is None:
            raise ValueError("WORKSTEAD_DATABASE_URL is not set (only `workstead serve` brings its own PostgreSQL)")
        url = self.database_url.get_secret_value()
        scheme, _, rest = url.partition("://")
        if scheme not in ("postgres", "postgresql", "postgresql+psycopg"):
            return url
        return f"postgresql+psycopg://{self._with_password(rest)}"

    def _with_password(self, rest: str) -> str:
        user, at, where = rest.partition("@")
        if self.database_password_file is None or not at or ":" in user:
            return rest
        password = self.database_password_file.read_text().rstrip("\n")
        return f"{user}:{quote(password, safe='')}@{where}"

    def child_environment(self, *, provider_keys: bool = False, **changed: str) -> dict[str, str]:
        """Return this process's environment for a child of ours, with ``WORKSTEAD_<NAME>`` changed.

        Providers' keys go to the one child that needs them, the gateway.
        """
        kept = {k: v for k, v in os.environ.items() if provider_keys or not k.upper().startswith(_KEYS)}
        return {**kept, **{f"WORKSTEAD_{name}": value for name, value in changed.items()}}

    @property
    def blob_dir(self) -> Path:
        return self.data_dir / "blobs"

    @property
    def gateway_dir(self) -> Path:
        """Of this machine's gateway: its sockets, its keys, the token of our own processes."""
        return self.data_dir / "gateway"

    def deployment_id(self) -> str:
        """Return this data directory's id, made at the first call; it labels every container and loop device."""
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o755)
        path = self.data_dir / "deployment"
        try:
            with path.open("x") as new:
                new.write(f"ws{secrets.token_hex(5)}")
        except FileExistsError:
            pass
        return path.read_text().strip()
