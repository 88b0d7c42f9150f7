"""What the gateway is told of a run: whose listener it gets, and what may pass there (CONTRACTS 6)."""

from pydantic import Field

from service.domain.models import ModelSpec
from service.domain.policies import NetworkRules, ProviderTools, RunBudget
from service.domain.tasks import Name, Sha256, Strict


class GrantedModel(Strict):
    """A model that may be asked, and the credential that is put in (its id; the secret is the gateway's alone)."""

    id: str
    spec: ModelSpec
    credential_id: str | None = None
    private: bool = False
    """An operator's entry: its upstream may be at a private address."""


class GrantedService(Strict):
    """A gateway service by its id; the gateway reads the rest itself."""

    id: str
    name: Name


class Grant(Strict):
    """Everything that the gateway needs to serve one attempt. JSON over the control socket."""

    run_id: str
    attempt: int
    fence: int
    project_id: str
    token_hashes: list[Sha256] = Field(min_length=1, max_length=64)
    """sha256 of the attempt's run tokens, the only ones that its listeners accept. Several where provisioning was repeated
    after a crash: the program may have been started with any of them."""
    models: list[GrantedModel] = Field(default_factory=list[GrantedModel], max_length=16)
    """The agent's own model first."""
    services: list[GrantedService] = Field(default_factory=list[GrantedService], max_length=16)
    provider_tools: ProviderTools = ProviderTools.DENY
    network: NetworkRules = Field(default_factory=NetworkRules)
    budget: RunBudget = Field(default_factory=RunBudget)
    seconds_left: float = Field(gt=0)
    """Until the wall clock's end; from then on the token opens nothing."""
    max_output_tokens: int | None = None
    """Reserved per request that names no bound of its own."""
    replay_of: str | None = None
    """Run whose cassette answers instead of the providers."""
    keep_bodies: bool = True
    public: bool = False
    """Also on the gateway's public side: a remote driver's token."""
