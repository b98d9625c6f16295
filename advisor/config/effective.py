"""Settings turned into what the engine takes, their machines and rules checked once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from advisor.cache import Cache
from advisor.config.files import (
    CommandError,
    Configurations,
    NoMachineError,
    Settings,
    choose_machine,
    wrong_use,
)
from advisor.engine import Options
from advisor.evidence import known_of
from advisor.finding import UNUSED_SUPPRESSION, Finding, Verdict
from advisor.observed import Observations
from costdb.records import dataclass, field, nearest, replace

if TYPE_CHECKING:
    from advisor.ir.kernel import Rule

_CODE = re.compile(r"[A-Za-z]+[0-9]*")

# The rules that are installed, and which of them a run is about.


def installed_rules() -> tuple[Rule, ...]:
    """Return the transforms that installed packages offer, by code.

    Raises
    ------
    CommandError
        When the metadata of the distribution, which names them, is missing.
    """
    from advisor.transform_registry import rules

    try:
        return rules()
    except LookupError as error:
        raise wrong_use(str(error)) from error


def split_codes(options: Iterable[str]) -> tuple[str, ...]:
    """Return the codes in repeated options whose values may hold several, by commas."""
    words = (word.strip() for option in options for word in option.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def resolve(
    select: Sequence[str], extend: Sequence[str], ignore: Sequence[str], known: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the codes to select (none: all) and to ignore, with prefixes spelt out.

    The longer of two prefixes that disagree wins, and of equal ones ``--ignore``.
    """
    chosen = [*select, *extend] if select else []

    def wanted(code: str) -> bool:
        for_it = _longest_match(code, [*chosen, *extend])
        if not chosen:
            for_it = max(for_it, 0)
        return for_it > _longest_match(code, ignore)

    unwanted = tuple(code for code in known if not wanted(code))
    return (tuple(code for code in known if wanted(code)) if chosen else ()), unwanted


def _longest_match(code: str, prefixes: Iterable[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds for a file, ready for the engine.

    Attributes
    ----------
    options : Options
    machine_digest : str
        Of the content of the machine's profile, and of what was measured there.
    fail_above : float or None
        A gain whose low end lies above it fails the run; None: whatever is shown does.
    rule_fail_above : mapping of str to float
        Goes over it for single rules, by code.
    """

    options: Options
    machine_digest: str
    fail_above: float | None
    rule_fail_above: Mapping[str, float]

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding makes the exit code 1."""
        limit = self.rule_fail_above.get(finding.code, self.fail_above)
        if finding.is_small or limit is None:
            return not finding.is_small
        prediction = finding.prediction if finding.verdict is Verdict.GAIN else None
        return prediction is not None and prediction.low > limit


@dataclass(slots=True)
class Resolver:
    """Looks up what holds for files; every distinct combination is checked once.

    Attributes
    ----------
    configurations : Configurations
    cache : Cache or None
    observations : Observations or None
        What runs showed; None where that is to be left out.
    details : bool
        Whether what findings rest on is to be shown.
    everything : bool
        Whether what saves too little to matter is to be shown too.
    named_only : bool
        Whether to leave out all that is known of this computer alone: its calibration where nothing
        names a machine, what was measured on it, and what runs showed.
    """

    configurations: Configurations
    cache: Cache | None
    observations: Observations | None = None
    details: bool = True
    everything: bool = False
    named_only: bool = False
    _known: tuple[tuple[str, str], ...] | None = None
    _done: dict[int, Effective] = field(default_factory=dict)

    def effective(self, path: str) -> Effective:
        """Return what holds for a file.

        Raises
        ------
        CommandError
            The configuration is wrong, or names no known machine or rule.
        """
        settings = self.configurations.of_file(path)
        # settings are kept by the configurations, one object for each combination
        if id(settings) not in self._done:
            self._done[id(settings)] = self._resolved(settings)
        effective = self._done[id(settings)]
        if self.observations is None or self.named_only:
            return effective
        seen = self.observations.of_file(path)
        messages = self.observations.messages_of_file(path)
        if not seen and not messages:
            return effective
        options = replace(effective.options, observed=seen, messages=messages)
        return replace(effective, options=options)

    def _resolved(self, settings: Settings) -> Effective:
        machine, machine_digest = self._machine(settings)
        selected, ignored = self._codes(settings)
        rules = {self._code(name): options for name, options in settings.rules.items()}
        options = Options(
            machine=machine,
            sizes=settings.sizes,
            select=selected,
            ignore=ignored,
            min_speedup=settings.min_speedup,
            size_origins=settings.size_origins,
            rule_min_speedup={
                code: rule.min_speedup
                for code, rule in rules.items()
                if rule.min_speedup is not None
            },
            details=self.details,
            everything=self.everything,
            local=not self.named_only,
            sparing=True,
        )
        limits = {c: rule.fail_above for c, rule in rules.items() if rule.fail_above is not None}
        return Effective(options, machine_digest, settings.fail_above, limits)

    def _machine(self, settings: Settings) -> tuple[str, str]:
        from costdb.machines import load_machine

        if self.named_only and settings.machine is None:
            raise NoMachineError(
                "advise: no machine is named here: `advise machine export NAME -o"
                ' profiles/ci.json`, and machine = "profiles/ci.json" in [tool.advise] of'
                " pyproject.toml"
            )
        try:
            name = choose_machine(settings.machine)
        except CommandError as error:
            if not settings.machine_origin.file:
                raise
            message = str(error).removeprefix("advise: ")
            raise settings.machine_origin.error(("machine",), f"machine: {message}") from error
        loaded = load_machine(name)
        document = json.dumps(loaded.document, sort_keys=True)
        known = repr(known_of(loaded.name))
        return name, sha256(f"{document}{known}".encode()).hexdigest()

    def _codes(self, settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if not (settings.select or settings.extend_select or settings.ignore or settings.rules):
            return (), ()
        codes = sorted({*(code for code, _ in self._rules()), UNUSED_SUPPRESSION})
        names = [word for rule in self._rules() for word in rule]
        for layer in settings.layers:
            named = (
                ("select", layer.select),
                ("ignore", layer.ignore),
                ("extend-select", layer.extend_select),
            )
            for key, prefixes in named:
                for place, prefix in enumerate(prefixes or ()):
                    if not any(code.startswith(self._code(prefix)) for code in codes):
                        near = nearest(prefix, names if "-" in prefix else codes)
                        message = f"unknown rule {prefix!r}{near}"
                        raise layer.origin.error((key, place), message)
            for name in layer.rules:
                if name not in names:
                    message = f"unknown rule {name!r}{nearest(name, names)}"
                    raise layer.origin.error(("rules", name), message)
        select, extend, ignore = (
            [self._code(word) for word in words]
            for words in (settings.select, settings.extend_select, settings.ignore)
        )
        return resolve(select, extend, ignore, codes)

    def _code(self, name: str) -> str:
        """Return the code of a rule by its name; a code, or the start of one, in capitals."""
        known = (code for code, own in self._rules() if name.lower() == own)
        return next(known, name.upper() if _CODE.fullmatch(name) else name)

    def _rules(self) -> Sequence[tuple[str, str]]:
        """Return codes and names of the installed rules, from the cache where it knows them."""
        if self._known is None:
            kept = () if self.cache is None else self.cache.read("rules", self.cache.environment)
            self._known = tuple((code, name) for code, name in kept or ())
        if not self._known:
            self._known = tuple((rule.code, rule.name) for rule in installed_rules())
            if self.cache is not None:
                self.cache.write("rules", self.cache.environment, self._known)
        return self._known
