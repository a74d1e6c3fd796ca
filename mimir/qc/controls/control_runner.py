"""Control of one passed check: variants of the tree run until one is red.

The order is: the tests of the tree, the scripts that the check executes, the work itself. Docs: docs/decisions/0019-negative-controls.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mimir.domain.evidence import CheckRun, ControlResult, ControlState
from mimir.domain.globs import matches
from mimir.qc.controls import decision, scripts, surface
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.controls.decision import WHOLE, SensitiveTests, decide_programs
from mimir.qc.controls.script_discovery import find_programs, find_unnamed
from mimir.qc.controls.scripts import Script, StartedPrograms
from mimir.qc.controls.surface import TrustedFiles
from mimir.qc.controls.variants import Alter, Execute, Variants
from mimir.qc.integrity.check_files import find_check_files
from mimir.qc.mutations.mutation import ChangedTests, Step
from mimir.qc.mutations.test_programs import TestProgram
from mimir.qc.results.report_parsers import PROGRAM_RUNNERS
from mimir.qc.results.request import lists_tests

Vary = Callable[[Path, Step], Sequence[str] | None]
"""Changes a checkout for one step, as `Alter` does."""

_MOST_GROUPS = 8
"""Most groups of test programs that are controlled one by one."""
_TEST_STEPS: Sequence[Step] = ("expectations", "strict", "statements")
_SCRIPT_STEPS: Sequence[Step] = ("expectations", "strict", "end")
_NOT_LOADED = "The tests load no code that other tasks changed."
_WITHOUT_WORK = "The check passes without this task's work, so it decides no criterion."
_PASSED = "The check passed although its expectations were changed."
_HIDDEN = "Tests that run without this work do not run with it."
_METHODS = {
    "expectations": "changed expectations",
    "strict": "failing statements",
    "statements": "failing statements",
    "end": "failing script",
}


async def run_control(case: ControlCase, execute: Execute) -> CheckRun:
    """Run the control of a check; the result is the run that decided, with its conclusion."""
    variants = Variants(case, execute)
    found = await _Control(case, variants).run()
    tree, tally = case.after.tree, found.tally
    counts = tally is not None and tally.counted != WHOLE
    result = ControlResult(
        state=found.state,
        method=found.method,
        sensitive=len(tally.sensitive) if tally and counts else 0,
        counted=len(tally.counted) if tally and counts else 0,
        runs=variants.count,
        reason=found.reason,
    )
    return replace(
        found.run,
        check=case.check.id,
        phase="control",
        again=False,
        stands_for="" if found.run.tree == tree else tree,
        control=result,
    )


class _Conclusion(NamedTuple):
    """Conclusion of a control, or of one kind of variants."""

    run: CheckRun
    """The run that decided."""
    state: ControlState
    method: str
    reason: str = ""
    tally: SensitiveTests | None = None


class _Control:
    """One control."""

    def __init__(self, case: ControlCase, variants: Variants) -> None:
        self._case = case
        self._variants = variants
        check = case.check
        self._trusted = TrustedFiles(
            named=(*(check.tests or ()), *check.protect), work=frozenset(case.changed)
        )
        self._runner = case.after.results.runner if case.after.results else ""
        is_by_program = self._runner in PROGRAM_RUNNERS
        self._program_tests = decision.counted_tests(case.after) if is_by_program else WHOLE
        # Earlier tasks may have silenced tests; empty: there were none.
        self._start = case.new_tests.base if case.new_tests.base != case.base_tree else ""

    async def run(self) -> _Conclusion:
        if scripts.only_reads(self._case.check.argv) or self._lists_new_tests():
            return await self._by_work()
        # If single tests are known, the programs of the command matter only if none of them is found.
        results = self._case.after.results
        if results and self._case.after.phase in ("merged", "gate") and not (results.fallback or await self._loads_others()):  # fmt: skip
            return _Conclusion(self._case.after, "unexercised", "", _NOT_LOADED)
        is_by_program = self._runner in PROGRAM_RUNNERS
        if results is not None and not is_by_program and (found := await self._by_tests()):
            return await self._find_deceived_script() or found if found.state == "red" else found
        programs = await self._by_programs() if results is None or is_by_program else None
        if programs and programs.state == "insensitive":
            return programs
        started = await find_programs(self._case, self._variants)
        if results is not None or not started.only_reads:
            if results is None:
                if found := await self._by_started_tests(started):
                    return found
                argv = self._case.check.argv
                started.scripts += await find_unnamed(started, argv, self._trusted, self._variants)
            if found := await self._by_scripts(started):
                return found
        return programs or await self._by_work()

    async def _loads_others(self) -> bool:
        """True if tests of the command, not of the plan, load changed code, by names in files."""
        found = find_check_files(replace(self._case.check, tests=None))
        files = {test.partition("::")[0] for test in decision.counted_tests(self._case.after)}
        tests = (*found.tests, *found.reached, *files)
        changed = self._case.changed
        return await self._variants.inspect(lambda at: surface.loads_code(at, tests, changed))

    async def _find_deceived_script(self) -> _Conclusion | None:
        """Return the control of a test outside of the runner that proves nothing; None: all do."""
        started = await find_programs(self._case, self._variants)
        files = {test.partition("::")[0] for test in decision.counted_tests(self._case.after)}
        started.scripts = [one for one in started.scripts if self._holds_test(one) and one.path not in files]  # fmt: skip
        found = await self._by_scripts(started)
        if started.build_calls and (found is None or found.state == "red"):
            found = await self._by_programs()
        return found if found and found.state == "insensitive" else None

    def _lists_new_tests(self) -> bool:
        """True if the tests are the work, and the check shows that a runner can load them."""
        is_listing = self._case.kind == "flip" and lists_tests(self._case.check.argv)
        return is_listing and all(map(self._trusted.may_test, self._case.changed))

    async def _by_started_tests(self, started: StartedPrograms) -> _Conclusion | None:
        """Decide by the tests of the tree, if the command starts any; only its exit code is known."""
        if not started.collected:
            changed: ChangedTests = {}

            def alter(checkout: Path) -> Sequence[str] | None:
                nonlocal changed
                changed = surface.mutate_tests(checkout, self._trusted, "statements")
                return self._case.check.argv if changed else None

            run = await self._variants.run(alter)
            is_free = run is None or not (run.timed_out or decision.is_red(run))
            if is_free and not any(map(self._is_test_of_plan, changed)):
                return None
        return await self._by_tests(started.collected)

    async def _by_tests(self, collected: Sequence[str] = ("**",)) -> _Conclusion | None:
        """Decide by the tests of the tree; None: the check does not depend on them.

        If it ignores changes in tests, that is decisive only for the `collected` ones.
        """
        case = self._case
        tally = SensitiveTests(counted=decision.counted_tests(case.after))
        changed: ChangedTests = {}
        listed: ChangedTests = {}

        def alter(checkout: Path, step: Step) -> Sequence[str] | None:
            nonlocal changed, listed
            changed = surface.mutate_tests(checkout, self._trusted, step, tally.counted)
            listed = {**listed, **changed}
            return case.check.argv if changed else None

        await self._vary(tally, _TEST_STEPS, alter, lambda: changed)
        if not tally.runs:
            return None
        flipped = decision.flipped_tests(case.before, tally.counted)
        # New tests that do not compile without the work hide the results of others.
        hidden = flipped.difference(case.before.results.states if case.before.results else ())
        if tally.deceived & hidden:
            base = await self._variants.run(lambda _: case.check.argv, case.base_tree)
            written = {path: changed[path] for path in case.changed if path in changed}
            flipped = decision.leave_out_held(flipped, hidden, base, written)
        silenced = decision.silenced_tests(tally, tally.runs[-1], changed)
        if tally.sensitive and await self._has_silenced(tally, silenced, alter):
            return self._insensitive(tally)
        if decision.has_only_starts(tally) and all(changed.values()):
            ignored = _bind_step(alter, "expectations")
            if not await self._is_insensitive_before(ignored):
                return self._insensitive(tally)
        if tally.is_red(flipped if case.kind == "flip" else frozenset()):
            is_hiding = await self._hides_tests(listed)
            return self._insensitive(tally, _HIDDEN) if is_hiding else _red(tally)
        if tally.deceived or tally.sensitive or decision.did_hang(tally.runs):
            return self._insensitive(tally)
        is_decisive = any(matches(one, collected) or self._is_test_of_plan(one) for one in listed)
        failing = _bind_step(alter, "statements")
        is_excused = not is_decisive or await self._is_insensitive_before(failing)
        return None if is_excused else self._insensitive(tally)

    async def _hides_tests(self, listed: ChangedTests) -> bool:
        """True if the runner executes a test without the work, but not with it.

        The run before shows this, unless the tests cannot be loaded without the work.
        """
        case = self._case
        parameters = await self._variants.inspect(lambda at: surface.count_parameters(at, listed))
        absent, skipped = decision.unexecuted_tests((case.before, case.after), listed)
        names: set[str] = set()

        def alter(checkout: Path) -> Sequence[str] | None:
            names.update(surface.outline_tests(checkout, self._trusted, listed, absent, skipped))
            # Without the work, Go's vet finds no subject of an example.
            return ("env", "GOFLAGS=-vet=off", *case.check.argv) if names else None

        if decision.has_fewer(case.after, parameters):
            return True
        run = await self._variants.run(alter) if absent or skipped else None
        failed = run.results.failed if run and run.results else ()
        return any(names & decision.words_of(test) for test in failed)

    async def _has_silenced(
        self, tally: SensitiveTests, silenced: frozenset[str], alter: Vary
    ) -> bool:
        """True if tests ignore a change that fails others, and did not before the work."""
        if self._case.base_tree == self._case.after.tree:
            return False
        steps: Sequence[tuple[Step, frozenset[str]]] = (
            ("expectations", tally.deceived),
            ("statements", silenced),
        )
        for step, tests in steps:
            if tests:
                run = await self._variants.run(_bind_step(alter, step), self._case.base_tree)
                if tests - decision.ignoring_tests(run):
                    return True
                run = await self._variants.run(_bind_step(alter, step), self._start)
                if run and run.results and tests & frozenset(run.results.failed):
                    return True
        return False

    async def _by_programs(self) -> _Conclusion | None:
        """Decide by compiled test programs; None: the check executes none."""
        programs = await self._variants.inspect(
            lambda at: list(surface.find_programs(at, self._trusted))
        )
        decided: _Conclusion | None = None
        for group in self._group_programs(programs):
            found = await self._by_program(group) if group else None
            if found and found.state == "insensitive":
                return found
            decided = decided or found
        return decided

    def _group_programs(self, programs: Sequence[TestProgram]) -> list[Sequence[TestProgram]]:
        """Return the programs that fail together: each group costs the check a build of its own."""
        if self._program_tests != WHOLE:
            return [programs]
        # One exit code tells nothing of several programs, so they fail one by one.
        own = [one for one in programs if one.has_end]
        count = min(len(own), _MOST_GROUPS)
        # The tests of a framework are linked into one program.
        return [
            [one for one in programs if not one.has_end],
            *(own[at::count] for at in range(count)),
        ]

    async def _by_program(self, programs: Sequence[TestProgram]) -> _Conclusion | None:
        """Decide by test programs that fail together; None: the check does not execute them."""
        runs: dict[Step, CheckRun] = {}
        counted = self._program_tests

        def alter(
            checkout: Path, step: Step, chosen: Sequence[TestProgram] = programs
        ) -> Sequence[str] | None:
            is_changed = surface.mutate_programs(checkout, chosen, step)
            return self._case.check.argv if is_changed else None

        async def failed(step: Step, chosen: Sequence[TestProgram]) -> frozenset[str]:
            run = await self._variants.run(partial(alter, step=step, chosen=chosen))
            if run is None:
                return frozenset()
            runs[step] = run
            failed = decision.failed_tests(counted, run)
            if self._runner == "gtest" and step in ("end", "replaced") and not failed:
                # Its report says nothing of what precedes or follows its tests.
                return counted if decision.is_red(run) else failed
            return failed

        tally = SensitiveTests(counted=counted)
        verdict = await decide_programs(programs, tally, failed)
        if not verdict or not runs:
            return None
        run = next(iter(runs.values()))
        if verdict == "insensitive" and await self._is_insensitive_before(_bind_step(alter, "end")):
            return None
        reason = _PASSED if verdict == "insensitive" else ""
        return _Conclusion(run, verdict, _METHODS["expectations"], reason, tally)

    def _is_test_of_plan(self, path: str) -> bool:
        return TrustedFiles(named=self._case.check.tests or (), work=()).is_named(path)

    async def _is_insensitive_before(self, alter: Alter) -> bool:
        """True if a check that held before the work ignored the same change then, too."""
        case = self._case
        if case.kind == "flip" or not case.before.green:
            return False
        if decision.is_red(await self._variants.run(alter, case.base_tree)):
            return False
        start = await self._variants.run(lambda _: case.check.argv, self._start)
        is_known = start is not None and start.green
        return not is_known or not decision.is_red(await self._variants.run(alter, self._start))

    async def _by_scripts(self, started: StartedPrograms) -> _Conclusion | None:
        """Decide by the scripts of the check; None: it does not depend on them."""
        decided: _Conclusion | None = None
        is_ignored = False
        files = self._trusted
        trusted = [one for one in started.scripts[::-1] if one.path not in files.work or files.may_test(one.path)]  # fmt: skip
        trusted.sort(key=lambda one: (one.interpreter == "sh", one.is_output_used))
        for script in trusted:
            # A called script fails on its own; of its caller, only the expectations say more.
            is_caller = script.interpreter == "sh" and not script.is_unnamed
            if decided and (script.is_output_used or not self._holds_test(script)):
                continue
            found = await self._by_script(script)
            if found and found.state == "insensitive":
                return found
            if found and decided is None:
                # The caller notices its own failure only: the work may stand in for an interpreter.
                decided = _ignored_script(found.run) if is_ignored and is_caller else found
            elif found is None:
                is_ignored |= await self._ignores(script)
        if decided is None and is_ignored:
            return _ignored_script(self._case.after)
        return decided

    def _holds_test(self, script: Script) -> bool:
        """True if a script is a test, or a program in the text of its caller."""
        return script.is_inline or self._trusted.may_test(script.path)

    async def _ignores(self, script: Script) -> bool:
        """True if a check ignores a test that fails at its start, and did not before the work."""

        def alter(checkout: Path) -> Sequence[str] | None:
            return surface.mutate_started(checkout, script, self._case.check.argv, "replaced")

        if script.is_unnamed or script.is_inline:
            return False
        # A program in the text of its caller may be one that has to fail: `! python -c …`.
        if not self._trusted.may_test(script.path) or await self._is_insensitive_before(alter):
            return False
        run = await self._variants.run(alter)
        return run is not None and not decision.is_red(run)

    async def _by_script(self, script: Script) -> _Conclusion | None:
        """Decide by a script; None: it does not decide."""
        tally = SensitiveTests(counted=WHOLE)

        def alter(checkout: Path, step: Step) -> Sequence[str] | None:
            return surface.mutate_started(checkout, script, self._case.check.argv, step)

        await self._vary(tally, _SCRIPT_STEPS, alter)
        if not tally.runs:
            return None
        # The end of a test is reached although its assertions are not: they wait for the work in vain.
        is_helper = script.is_unnamed and script.interpreter != "sh"
        has_only_end = tally.step == "end" and len(tally.runs) == len(_SCRIPT_STEPS)
        is_unreached = self._holds_test(script) and has_only_end
        is_unreached &= not is_helper
        if tally.sensitive and not is_unreached:
            return _red(tally)
        if tally.deceived or is_unreached or decision.did_hang(tally.runs):
            return self._insensitive(tally)
        run = await self._variants.run(_bind_step(alter, "replaced"))
        if run is None or not decision.is_red(run):
            return None
        detached = await self._variants.run(_bind_step(alter, "detached"))
        if detached.green if detached else script.is_output_used:
            # Its exit code is lost, but without its output the check fails.
            return _Conclusion(run, "red", _METHODS["end"])
        return self._insensitive(tally)

    async def _by_work(self) -> _Conclusion:
        """Decide by the work: absent in the run before, or unparsable."""
        case = self._case
        if case.kind == "flip":
            return _Conclusion(case.before, "red", "run before the work")
        work = [path for path in case.changed if not self._trusted.may_test(path)]

        def alter(checkout: Path) -> Sequence[str] | None:
            return case.check.argv if surface.break_work(checkout, work) else None

        run = await self._variants.run(alter)
        if run is not None and decision.is_red(run):
            return _Conclusion(run, "red", "broken work")
        return _Conclusion(run or case.after, "unexercised", "broken work", _WITHOUT_WORK)

    async def _vary(
        self,
        tally: SensitiveTests,
        steps: Iterable[Step],
        alter: Vary,
        changed: Callable[[], ChangedTests] = dict,
    ) -> None:
        """Run variants until each counted test was red; `changed` holds the tests of the last."""
        for step in steps:
            if not tally.survivors:
                return
            # If the first variant did not end, it shows nothing of the equalities in it.
            if step == "strict" and tally.runs and tally.runs[0].timed_out:
                continue
            run = await self._variants.run(_bind_step(alter, step))
            if run is not None:
                tally.note(step, run, changed())

    def _insensitive(self, tally: SensitiveTests, reason: str = _PASSED) -> _Conclusion:
        if reason == _PASSED and decision.did_hang(tally.runs):
            limit = self._variants.limit
            reason = f"The check with changed expectations did not end within {limit:g} s."
        return _Conclusion(tally.runs[0], "insensitive", _METHODS["expectations"], reason, tally)


def _red(tally: SensitiveTests) -> _Conclusion:
    return _Conclusion(tally.runs[0], "red", _METHODS[tally.step or "end"], tally=tally)


def _ignored_script(run: CheckRun) -> _Conclusion:
    return _Conclusion(run, "insensitive", _METHODS["end"], _PASSED)


def _bind_step(alter: Vary, step: Step) -> Alter:
    return lambda checkout: alter(checkout, step)
