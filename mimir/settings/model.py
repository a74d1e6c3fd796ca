"""The tree of settings, its sections and their defaults."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from mimir.attempts.program.presets import PROGRAM_PRESETS
from mimir.attempts.program.readers import is_reader
from mimir.domain.agent import DEFAULT_TOOLS, name_model
from mimir.domain.money import ModelPrice
from mimir.domain.program import PLACEHOLDERS, TaskPlace, has_placeholder, unknown_placeholder
from mimir.domain.run import ControlMode
from mimir.settings.providers import PRESETS

RoleName = Literal["ecko", "pm", "agentinator", "worker", "qc", "qc_reporter", "pm_reporter"]


LogLevel = Literal["debug", "info", "warning", "error"]


class _SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _temperature(value: object) -> object:
    # TOML and the environment have no null.
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Temperature = Annotated[float | None, BeforeValidator(_temperature)]


class RoleSettings(_SettingsSection):
    """The model of one role. Unset values come from `llm`."""

    endpoint: str = ""
    """Name of an endpoint or preset. Empty: the prefix of the model's name decides."""
    model: str = ""
    temperature: Temperature = 0.0
    max_tokens: int | None = Field(default=None, gt=0)


_Money = Annotated[Decimal, Field(ge=0, le=10_000, decimal_places=6)]
_Positive = Annotated[int, Field(gt=0)]
_TokenLimit = _Positive | dict[str, _Positive] | None


class PriceSettings(_SettingsSection):
    """Price of a million tokens of a model, in the one currency of all prices."""

    input: _Money
    output: _Money
    cached_input: _Money | None = None
    """Prompt tokens from the provider's cache. None: as `input`."""
    long_from: _Positive | None = None
    """Prompt tokens above which the `long_…` prices hold for the whole call."""
    long_input: _Money | None = None
    long_output: _Money | None = None
    long_cached_input: _Money | None = None
    as_of: str = Field(default="", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """Date of the list that the price is from; `mimir prices update` renews dated prices only."""
    source: str = ""
    """Name of that list."""

    @model_validator(mode="after")
    def _require_long_prices(self) -> Self:
        given = (self.long_from, self.long_input, self.long_output)
        if any(one is None for one in given) and any(one is not None for one in given):
            raise ValueError("long_from, long_input and long_output go together")
        return self

    @property
    def price(self) -> ModelPrice:
        """The price in units."""
        short = ModelPrice.per_million(self.input, self.output, self.cached_input)
        if self.long_from is None or self.long_input is None or self.long_output is None:
            return replace(short, as_of=self.as_of)
        long = ModelPrice.per_million(self.long_input, self.long_output, self.long_cached_input)
        return replace(short, long_from=self.long_from, long=long, as_of=self.as_of)


EndpointName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class EndpointSettings(_SettingsSection):
    """A further endpoint. Unset values are those of the preset with its name."""

    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = ""
    """Name of the variable that holds the key."""
    api_key_in_keyring: bool = False
    """True: the keyring holds the key: service "mimir", user: the endpoint's name."""
    extra_body: dict[str, object] = {}
    headers: dict[str, str] = {}
    structured: Literal["", "auto", "json_schema", "text"] = ""
    """Empty: `llm.structured`."""


class LlmSettings(_SettingsSection):
    """The model, its endpoint and its limits."""

    base_url: str = ""
    """OpenAI-compatible endpoint; empty: OPENAI_BASE_URL, otherwise the provider's."""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the variable that holds the key."""
    model: str = ""
    """A model of the endpoint, `ENDPOINT/MODEL`, or `provider:model` for another chat model."""
    endpoints: dict[EndpointName, EndpointSettings] = {}
    """Further endpoints, by name."""
    extra_body: dict[str, object] = {}
    headers: dict[str, str] = {}
    lane_header: bool = False
    """True: each request has X-Mimir-Lane: run/task/attempt/role."""
    proxy: SecretStr = SecretStr("")
    """URL of an HTTP proxy; "none": direct. Empty: HTTPS_PROXY and the like decide."""
    structured: Literal["auto", "json_schema", "text"] = "auto"
    connect_seconds: float = Field(default=10.0, gt=0)
    stall_seconds: float = Field(default=120.0, gt=0)
    """Longest wait for the first byte and between two bytes."""
    answer_seconds: float = Field(default=600.0, gt=0)
    """Longest wait for a whole answer."""
    max_answer_bytes: int = Field(default=2_000_000, gt=0)
    context_tokens: _TokenLimit = None
    """Most tokens of prompt and answer; a table has one limit for each model."""
    max_output_tokens: _TokenLimit = None
    tries: int = Field(default=6, ge=1)
    retry_seconds: float = Field(default=300.0, ge=0)
    """Longest time of all tries of one call."""
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    concurrency: int = Field(default=32, gt=0)
    """Most calls at once."""
    prices: dict[str, PriceSettings] = {}
    """By model name; `run.max_cost` needs a price for each model of the run."""


def _own_variable(name: str) -> str:
    if name.upper().startswith("MIMIR_"):
        raise ValueError(f"{name!r} is a variable of mimir")
    return name


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    return path


class SandboxSettings(_SettingsSection):
    """The sandbox for commands."""

    backend: Literal["bubblewrap", "none"] = "bubblewrap"
    """`none` runs commands unprotected; the report states it."""
    share: list[str] = []
    """Further files, folders and globs for commands: of the project, or absolute."""
    read_only: list[Annotated[str, AfterValidator(_absolute)]] = []
    """Older form of `share` for absolute paths, which commands cannot write to."""
    env: dict[str, str] = {}
    """Variables of every command. They reach the outputs, so they must hold no secret."""
    memory_mb: int = Field(default=4096, gt=0)
    processes: int = Field(default=256, gt=0)
    file_mb: int = Field(default=512, gt=0)


class HistorySettings(_SettingsSection):
    """Exchange of commits between processes in several directories or on several hosts."""

    remote: str = ""
    """A URL that git can push to. Empty: all processes of a run use one directory."""


class Neo4jSettings(_SettingsSection):
    """Login of a Neo4j store whose URI has none."""

    user: str = "neo4j"
    password: SecretStr = SecretStr("")
    """Empty here and in the URI: no authentication."""
    database: str = ""
    """Empty: the user's default."""
    browser: str = ""
    """Address of Neo4j Browser, for the report's links; empty: http://HOST:7474/browser/."""
    patience_seconds: float = Field(default=300.0, ge=0)
    """Longest wait for a lost server before the run pauses."""


class RunSettings(_SettingsSection):
    """Limits and concurrency of a run."""

    workers: int = Field(default=4, ge=1, le=256)
    lease_seconds: float = Field(default=300.0, gt=0)
    max_calls: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost: Decimal | None = Field(default=None, gt=0, le=100_000, decimal_places=6)
    """In the currency of `llm.prices`."""
    time_limit_minutes: float | None = Field(default=None, gt=0)
    apply: Literal["auto", "never", "commit"] = "auto"
    parallel_checks: int = Field(default=2, ge=1)
    attempt_tokens: int = Field(default=1_000_000, gt=0)
    """Limit of the tokens of one attempt's worker."""
    deliverable_files: _Positive = 5_000
    deliverable_mb: _Positive = 100


class CheckSettings(_SettingsSection):
    """Settings of the proof that a check must give."""

    controls: ControlMode = "accepted"
    """Whether a passed check must fail with changed expectations."""
    repeat: int = Field(default=1, ge=1, le=20)
    test_command: str = Field(default="", max_length=500, pattern=r"^[^\r\n`]*$")
    """Command line of the project's tests, for the PM. Empty: it is found."""


class ProgramSettings(_SettingsSection):
    """A program of agents. Unset values are those of the preset with its name."""

    command: list[str] = Field(default=[], min_length=1)
    """Words; `{model}`, `{prompt}` and `{task}` are replaced. There is no shell."""
    prompt: TaskPlace = "stdin"
    """Place of the task: `stdin`, `argument` (the last word) or `flag` (`{task}`)."""
    output: str = "text"
    """`text`, `json:PATH`, `jsonl:TYPE.PATH`, or the name of a shipped preset."""
    environment: list[Annotated[str, AfterValidator(_own_variable)]] = []
    """Names of variables that it gets."""
    network: bool = False
    home: list[str] = []
    """Paths of the home that it sees; its changes of them are thrown away."""
    home_writable: list[str] = []
    version_command: list[str] = []
    """Words that print its version, for `mimir doctor`."""

    @field_validator("command")
    @classmethod
    def _require_placeholders(cls, command: list[str]) -> list[str]:
        if unknown := unknown_placeholder(tuple(command)):
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"{{{unknown}}} is no placeholder; there are {known}")
        return command

    @field_validator("output")
    @classmethod
    def _require_reader(cls, output: str) -> str:
        if not is_reader(output):
            raise ValueError(f"{output!r} is not text, json:PATH or jsonl:TYPE.PATH")
        return output

    @model_validator(mode="after")
    def _require_task(self) -> Self:
        if (
            self.prompt == "flag"
            and self.command
            and not has_placeholder(tuple(self.command), "task")
        ):
            raise ValueError('with prompt = "flag" the command names {task}')
        return self


class AgentSettings(_SettingsSection):
    """Agent definitions: their directories and their rights."""

    path: list[Annotated[str, AfterValidator(_absolute)]] = []
    """Further directories with definitions, which are trusted."""
    vscode_prompts: Annotated[str, AfterValidator(_absolute)] | None = None
    """Prompts folder of VS Code, whose chat modes and agents are trusted; None: none."""
    default_tools: list[str] = list(DEFAULT_TOOLS)
    """Tools of a definition that names none, and the most of one that is not trusted."""
    project_first: bool = False
    """Whether trusted definitions of the project precede those of the user."""
    models: dict[str, str] = {}
    """Name in a definition → model."""
    accept: Literal["primary", "user", "engine"] = "primary"
    """Principal that decides about proposed memories; `engine`: also the engine, if sure."""
    share_preambles: bool = False
    """Whether generated preambles are kept in the user's cache, for all projects."""
    session_calls: int = Field(default=20, ge=1, le=1000)
    """Invocations of one session."""
    session_concurrent: int = Field(default=5, ge=1, le=64)
    """Agents of one session at work at the same time; further ones wait."""
    session_max_calls: int | None = Field(default=None, gt=0)
    """Model calls of all agents of one session together."""
    session_max_tokens: int | None = Field(default=None, gt=0)
    session_max_cost: Decimal | None = Field(default=None, gt=0, le=100_000, decimal_places=6)
    depth: int = Field(default=2, ge=0, le=2)
    """Longest chain of agents that spawn agents."""
    refinements: int = Field(default=2, ge=0, le=20)
    """Of one task."""
    similarity_threshold: float = Field(default=0.85, gt=0, le=1)
    """Share of equal word triples from which two tasks count as one."""
    spawns_per_day: int = Field(default=200, ge=1)
    """Invocations of all sessions in 24 hours."""
    tool_calls: int = Field(default=20, ge=1, le=200)
    timeout_seconds: int = Field(default=300, ge=10, le=7200)
    program_timeout_seconds: int = Field(default=600, ge=10, le=7200)
    """Of a program."""
    reserve_tokens: int = Field(default=200_000, gt=0)
    """Charged for a program that reports no usage."""
    programs: dict[EndpointName, ProgramSettings] = {}
    """Programs of agents, by name."""

    @field_validator("programs")
    @classmethod
    def _require_commands(cls, programs: dict[str, ProgramSettings]) -> dict[str, ProgramSettings]:
        for name, one in programs.items():
            if not one.command and name not in PROGRAM_PRESETS:
                raise ValueError(f"the program {name!r} has no command")
        return programs

    @field_validator("default_tools")
    @classmethod
    def _require_reading(cls, tools: list[str]) -> list[str]:
        for tool in tools:
            if tool not in DEFAULT_TOOLS:
                raise ValueError(f"{tool!r} is not one of {', '.join(DEFAULT_TOOLS)}")
        return tools


class MemorySettings(_SettingsSection):
    """Accepted memories."""

    days: int = Field(default=0, ge=0, le=36_500)
    """Age at which they expire; 0: never."""


class QuestionSettings(_SettingsSection):
    """Questions of agents to the user."""

    expire_days: float = Field(default=7.0, ge=0, le=3650)
    """After this time the default applies; 0: never."""
    max_open_per_task: int = Field(default=3, ge=0, le=100)
    max_open_per_run: int = Field(default=10, ge=0, le=1000)


class McpSettings(_SettingsSection):
    """The server for agents."""

    http: str = "127.0.0.1:8811"
    """Address of `--http`."""
    public_url: str = ""
    """The only accepted host and origin; empty: loopback."""
    requests_per_minute: int = Field(default=60, gt=0)
    """Of one token."""
    max_concurrent: int = Field(default=8, gt=0)
    """Calls of one token at the same time."""
    tools: list[str] = ["core", "delegation"]
    """Tool sets."""
    wait_seconds: float = Field(default=45.0, ge=0, le=50)
    """Longest wait of a call; clients stop waiting after a minute."""
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = "info"
    """Least important lines on standard error."""


class PatternSettings(_SettingsSection):
    """Stops of planning at which the user decides."""

    default: Literal["direct", "ask", "sdd", "auto"] = "direct"
    rounds: int = Field(default=3, ge=0, le=20)
    """Rounds of questions of the interviewer."""
    rejections: int = Field(default=5, ge=1, le=100)
    """Rejections of one subject that end the run."""


class Settings(_SettingsSection):
    """All settings."""

    llm: LlmSettings = LlmSettings()
    roles: dict[RoleName, RoleSettings] = {}
    store: str = ""
    """Empty: the project's `.mimir/mimir.db`; a file path, `sqlite:///…` or `neo4j://…`."""
    neo4j: Neo4jSettings = Neo4jSettings()
    sandbox: SandboxSettings = SandboxSettings()
    history: HistorySettings = HistorySettings()
    run: RunSettings = RunSettings()
    checks: CheckSettings = CheckSettings()
    agents: AgentSettings = AgentSettings()
    questions: QuestionSettings = QuestionSettings()
    memory: MemorySettings = MemorySettings()
    mcp: McpSettings = McpSettings()
    patterns: PatternSettings = PatternSettings()

    @field_validator("sandbox", mode="before")
    @classmethod
    def _expand_backend(cls, value: object) -> object:
        # `sandbox = "none"` is the short form of the table.
        return {"backend": value} if isinstance(value, str) else value

    def role(self, name: str) -> RoleSettings:
        """Return one role's settings."""
        return next((one for role, one in self.roles.items() if role == name), RoleSettings())

    def model_of(self, role: str) -> str:
        """Return the full name of a role's model, its endpoint included; empty: the default."""
        own = self.role(role)
        return name_model(own.endpoint, own.model, self.llm.model)

    def split_endpoint(self, model: str) -> tuple[str, str]:
        """Split `ENDPOINT/MODEL`; the endpoint is empty for `llm.base_url`, or OpenAI's.

        A prefix is an endpoint if `llm.endpoints` or a role names it. It is also a preset if
        `llm.base_url` is not set: gateways have such names of their own.
        """
        prefix, _, own = model.partition("/")
        named = {*self.llm.endpoints, *(role.endpoint for role in self.roles.values())}
        is_preset = prefix in PRESETS and not self.llm.base_url
        return (prefix, own) if own and (prefix in named or is_preset) else ("", model)

    @property
    def prices(self) -> Mapping[str, ModelPrice]:
        """The prices, by model name."""
        return {name: one.price for name, one in self.llm.prices.items()}

    @property
    def api_key(self) -> str:
        """The key; empty if there is none."""
        return self.llm.api_key.get_secret_value()
