"""Catalogue of the definitions: addresses, and the definition that each means. Pure."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mimir.domain.agent import DEFAULT_TOOLS
from mimir.domain.agent_definition import AgentDefinition
from mimir.domain.ids import PROJECT_PREFIX
from mimir.domain.value_class import value_class
from mimir.errors import UsageError
from mimir.registry.findings import make_agent_finding
from mimir.registry.tool_names import ToolGrant, grant_tools

NO_MODELS: Mapping[str, str] = {}


@value_class
class AgentEntry:
    """A definition with its address."""

    definition: AgentDefinition
    address: str
    grant: ToolGrant
    model: str = ""
    """The model that the settings choose for it; empty: that of the role."""
    hidden_by: str = ""
    """Path of the definition that the address means; empty: this one."""


@value_class
class AgentCatalogue:
    """The definitions that were found."""

    entries: tuple[AgentEntry, ...]

    def find(self, address: str) -> AgentEntry:
        """Return the definition of an address; `_` and `-` are equal.

        Raises:
            UsageError: There is none; the message names the nearest one.
        """
        wanted = normalize_address(address)
        known = {one.address: one for one in self.entries if not one.hidden_by}
        if wanted in known:
            return known[wanted]
        # A trusted definition of the project keeps its own address.
        for one in self.entries:
            in_project = one.definition.source.location == "project"
            if in_project and wanted == f"{PROJECT_PREFIX}{one.definition.name}":
                return one
        raise UsageError(explain_unknown(address, known), next_step="List them: mimir agents")


def explain_unknown(address: str, known: Iterable[str]) -> str:
    """Return the message of an address without a definition, with the nearest one."""
    near = difflib.get_close_matches(normalize_address(address), [*known], n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"Agent {address[:80]!r} does not exist.{hint}"


def normalize_address(address: str) -> str:
    """Return the form in which addresses are compared."""
    return address.strip().casefold().replace("_", "-")


def build_catalogue(
    definitions: Iterable[AgentDefinition],
    *,
    project_first: bool = False,
    default_tools: tuple[str, ...] = DEFAULT_TOOLS,
    models: Mapping[str, str] = NO_MODELS,
) -> AgentCatalogue:
    """Return the definitions with addresses; for each address the first one wins.

    Args:
        definitions: In the order in which they were found.
        project_first: Whether trusted definitions of the project precede all others.
        default_tools: Tools of a definition that names none.
        models: Name in a definition → model.
    """
    ordered = sorted(definitions, key=lambda one: _rank(one, project_first))
    entries: list[AgentEntry] = []
    winners: dict[str, str] = {}
    for found in ordered:
        model = next((models[name] for name in found.models if name in models), "")
        # A program gets the name as it is.
        is_known = bool(model) or not found.models or found.kind == "cli"
        one = found if is_known else _note_model(found)
        address = _address_of(one)
        hidden_by = winners.get(address, "")
        is_own = bool(hidden_by) and one.source.location == "project"
        entries.append(
            AgentEntry(
                definition=one,
                # A hidden definition of the project is still invoked by its own address.
                address=f"{PROJECT_PREFIX}{one.name}" if is_own else address,
                grant=grant_tools(one, default_tools),
                model=model,
                hidden_by=hidden_by,
            )
        )
        winners.setdefault(address, one.source.path)
    return AgentCatalogue(entries=tuple(sorted(entries, key=_by_address)))


def _note_model(definition: AgentDefinition) -> AgentDefinition:
    message = f"No setting maps the model {definition.models[0][:80]!r}; the default model is used."
    hint = "Set it in your own settings file: [agents.models]"
    finding = make_agent_finding("model-unmapped", message, suggestion=hint)
    return replace(definition, findings=(*definition.findings, finding))


def _address_of(definition: AgentDefinition) -> str:
    source = definition.source
    # An untrusted definition must not take the name of another one.
    prefix = PROJECT_PREFIX if source.location == "project" and not source.is_trusted else ""
    return prefix + normalize_address(definition.name)


def _rank(definition: AgentDefinition, project_first: bool) -> int:
    order: Sequence[str] = ("user", "extra", "shipped", "project")
    source = definition.source
    if project_first and source.location == "project" and source.is_trusted:
        return -1
    return order.index(source.location)


def _by_address(entry: AgentEntry) -> tuple[str, bool]:
    return entry.address, bool(entry.hidden_by)
