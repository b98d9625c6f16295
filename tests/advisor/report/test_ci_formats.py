"""What build servers and reviewers read: SARIF, GitHub, GitLab, JUnit, reviewdog, workflows.

SARIF is held to the schema that OASIS published, the workflows to those of their servers. For the
others there is no schema, or none in a package: what their documentation says stands here as one.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings

from advisor.engine import Options, check_source
from advisor.files import reported_path
from advisor.finding import Verdict
from advisor.report.model import FORMATS, Report, full_message, renderer
from advisor.report.style import Style
from tests.advisor.report import official_schemas
from tests.advisor.report.report_samples import CALM, EMPTY, REPORTS, SAMPLE

ROOT = Path(__file__).parents[3]


def rendered(output_format: str, report: Report) -> str:
    return renderer(output_format)(report, Style())


def report_on(source: str, path: str = "box_sum.py", **sizes: int) -> Report:
    result = check_source(path, source, Options("t3e", sizes, (), (), 1.05))
    assert result.findings
    return Report("t3e", result.findings, result.remarks, {path: source})


TEXT, SOME = {"type": "string"}, {"type": "string", "minLength": 1}


def table(**parts: object) -> dict[str, object]:
    """Return the schema of an object with these parts and no others; `_` ends what may lack."""
    return {
        "type": "object",
        "required": [name for name in parts if not name.endswith("_")],
        "additionalProperties": False,
        "properties": {name.removesuffix("_"): part for name, part in parts.items()},
    }


NUMBER = {"type": "integer", "minimum": 1}
POSITION = table(line=NUMBER, column=NUMBER)


@pytest.fixture(scope="module")
def real() -> Report:
    return report_on((ROOT / "examples/box_sum.py").read_text(), b=9)


# --- SARIF --------------------------------------------------------------------------------


@given(REPORTS)
@settings(max_examples=20, deadline=None)
def test_sarif_follows_the_official_schema(real: Report, report: Report) -> None:
    for one in (report, real, SAMPLE, EMPTY):
        log = json.loads(rendered("sarif", one))
        official_schemas.sarif().validate(log)
        (invocation,) = log["runs"][0]["invocations"]
        assert invocation["executionSuccessful"] is not one.failed


def test_a_log_says_whether_everything_could_be_read() -> None:
    told = rendered("junit", replace(CALM, failed=True))
    assert "o finding in what could be read" in told
    assert "o finding in what could be read" not in rendered("junit", CALM)


def test_a_log_says_what_was_not_analysed_and_where() -> None:
    log = json.loads(rendered("sarif", SAMPLE))
    (invocation,) = log["runs"][0]["invocations"]
    (part,) = (one for one in invocation["toolExecutionNotifications"] if "locations" in one)
    assert "np.append" in part["message"]["text"]
    assert part["locations"][0]["physicalLocation"]["region"] == {"startLine": 32}
    assert log["runs"][0]["properties"]["coverage"]["complete"] is False


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_sarif_says_what_code_scanning_needs(report: Report) -> None:
    log = json.loads(rendered("sarif", report))
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert -1 <= result["rank"] <= 100
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert set(region) == {"startLine", "startColumn", "endLine", "endColumn"}
        assert min(region.values()) >= 1
        assert (region["startLine"], region["startColumn"]) <= (
            region["endLine"], region["endColumn"]
        )  # fmt: skip
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert not uri.startswith("/") and ":" not in uri and "\\" not in uri
        assert result["partialFingerprints"]["primaryLocationLineHash"]


def test_the_gain_is_in_the_first_sentence(real: Report) -> None:
    for result in json.loads(rendered("sarif", real))["runs"][0]["results"]:
        text = result["message"]["text"]
        assert re.match(r"(GAIN|UNCERTAIN|PLAN) [0-9.]+x \([0-9.]+x to [0-9.]+x\)", text)
        assert result["level"] == ("warning" if text.startswith("GAIN") else "note")
        assert result["properties"]["verdict"] == text.partition(" ")[0].lower()


# --- GitLab and GitHub --------------------------------------------------------------------

# What GitLab documents for the reports of other tools. Its server checks less than this, by a
# schema in its sources that no package has: it drops all that follows the first wrong finding.
_ISSUE = table(
    description=TEXT,
    check_name=SOME,
    fingerprint=SOME,
    severity={"enum": ["info", "minor", "major", "critical", "blocker"]},
    location=table(
        path={"type": "string", "pattern": "^(?!/|\\./)"},
        positions=table(begin=POSITION, end_=POSITION),
    ),
)
_GITLAB = {"type": "array", "items": _ISSUE}


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_gitlab_gets_what_it_documents(report: Report) -> None:
    issues = json.loads(rendered("gitlab", report))
    jsonschema.validate(issues, _GITLAB)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue, finding in zip(issues, report.findings, strict=True):
        assert issue["severity"] == ("minor" if finding.verdict is Verdict.GAIN else "info")


_COMMAND = re.compile(
    r"::(notice|warning|error) ((?:[a-zA-Z]+=[^,:\r\n]*)(?:,[a-zA-Z]+=[^,:\r\n]*)*)::(.*)"
)
_PROPERTIES = {"title", "file", "line", "endLine", "col", "endColumn"}
_ESCAPES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}


def unescaped(text: str, *escapes: str) -> str:
    """Return what the runner makes of a text: the percent sign itself comes last."""
    for escape in escapes:
        text = text.replace(escape, _ESCAPES[escape])
    return text.replace("%25", "%")


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_github_gets_commands_that_it_parses(report: Report) -> None:
    *lines, coverage = rendered("github", report).split("\n")[:-1]
    assert len(lines) == len(report.findings)
    assert _COMMAND.fullmatch(coverage) and coverage.startswith("::notice title=advise coverage::")
    for line, finding in zip(lines, report.findings, strict=True):
        command = _COMMAND.fullmatch(line)
        assert command is not None, line
        assert command[1] == ("warning" if finding.verdict is Verdict.GAIN else "notice")
        properties = dict(one.split("=", 1) for one in command[2].split(","))
        assert properties.keys() <= _PROPERTIES
        assert int(properties["line"]) == finding.span.start_line
        assert int(properties["endLine"]) >= finding.span.start_line
        assert ("col" in properties) == (finding.span.start_line == finding.span.end_line)
        # what is shown is what was said
        assert unescaped(command[3], "%0D", "%0A") == full_message(finding)
        assert unescaped(properties["title"], *_ESCAPES) == f"{finding.code} {finding.name}"
        assert unescaped(properties["file"], *_ESCAPES) == reported_path(finding.path)[1]


# --- JUnit and reviewdog ------------------------------------------------------------------

# What the schema of Jenkins' xUnit plugin permits of what we write: attributes that must be
# there, and those that may. It is in no package.
_JUNIT = {
    "testsuites": ((), ("name", "time", "tests", "failures", "errors")),
    "testsuite": (("name", "tests", "failures", "errors"), ("skipped", "file")),
    "testcase": (("name",), ("classname", "time", "group")),
    "failure": ((), ("type", "message")),
    "system-out": ((), ()),
}
_BELOW = {
    "testsuites": ("testsuite",),
    "testsuite": ("testcase",),
    "testcase": ("failure", "system-out"),
    "failure": (),
    "system-out": (),
}


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_junit_is_what_jenkins_permits_and_drops_nothing(report: Report) -> None:
    for one in (report, EMPTY):
        root = ElementTree.fromstring(rendered("junit", one).encode("utf-8"))
        assert root.tag == "testsuites"
        for element in root.iter():
            required, permitted = _JUNIT[element.tag]
            assert set(required) <= element.attrib.keys() <= {*required, *permitted}
            assert all(child.tag in _BELOW[element.tag] for child in element)
            if element.tag in ("testsuites", "testsuite"):
                cases, failures = element.findall(".//testcase"), element.findall(".//failure")
                assert element.get("tests") == str(len(cases))
                assert element.get("failures") == str(len(failures))
        # of two cases with one identity, servers show one
        cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
        assert len(set(cases)) == len(cases) == len(one.findings) + 1
        assert len(root.findall(".//failure")) == sum(map(one.fails, one.findings))


# What reviewdog's definition (a protocol buffer with a JSON schema made from it) says.
_RANGE = table(start=POSITION, end=POSITION)
_SEVERITY = {"enum": ["UNKNOWN_SEVERITY", "ERROR", "WARNING", "INFO"]}
_DIAGNOSTIC = table(
    message=TEXT,
    location=table(path=TEXT, range=_RANGE),
    severity_=_SEVERITY,
    code_=table(value=TEXT, url_=TEXT),
    suggestions_={"type": "array", "items": table(range=_RANGE, text=TEXT)},
)
_RDJSON = table(
    source=table(name=TEXT, url_=TEXT),
    severity_=_SEVERITY,
    diagnostics={"type": "array", "items": _DIAGNOSTIC},
)


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_reviewdog_gets_what_it_defines(real: Report, report: Report) -> None:
    for one in (report, real, EMPTY):
        document = json.loads(rendered("rdjson", one))
        jsonschema.validate(document, _RDJSON)
        told = len(one.findings) + len(one.coverage.not_understood)
        assert len(document["diagnostics"]) == told
        for diagnostic in document["diagnostics"]:
            place = diagnostic["location"]["range"]
            start, end = (tuple(place[edge].values()) for edge in ("start", "end"))
            assert start <= end


# --- fingerprints -------------------------------------------------------------------------


def _identities(report: Report) -> list[tuple[str, str, str, str]]:
    results = json.loads(rendered("sarif", report))["runs"][0]["results"]
    hashes = [one["partialFingerprints"]["primaryLocationLineHash"] for one in results]
    issues = [one["fingerprint"] for one in json.loads(rendered("gitlab", report))]
    own = [one["fingerprint"] for one in json.loads(rendered("json", report))["findings"]]
    root = ElementTree.fromstring(rendered("junit", report).encode("utf-8"))
    *cases, _ = (f"{case.get('classname')} {case.get('name')}" for case in root.iter("testcase"))
    return list(zip(own, hashes, issues, cases, strict=True))


def test_a_finding_survives_the_move_of_its_lines(real: Report) -> None:
    source = real.sources["box_sum.py"]
    moved = report_on(source.replace("\n@kernel", "\nUNRELATED = 1\n\n\n# moved\n@kernel"), b=9)
    lines = [[finding.span.start_line for finding in one.findings] for one in (real, moved)]
    assert [line + 4 for line in lines[0]] == lines[1]
    assert _identities(moved) == _identities(real)
    # a form feed, which some editors put between sections, ends no line of Python's
    converted = report_on("\f" + source.replace("\n", "\r\n"), b=9)
    assert _identities(converted) == _identities(real)


def test_another_statement_kernel_or_file_is_another_finding(real: Report) -> None:
    source = real.sources["box_sum.py"]
    identities = set(_identities(real))
    for other in (
        report_on(source.replace("for _ in", "for unused in"), b=9),
        report_on(source.replace("def box_sum", "def other_sum"), b=9),
        report_on(source, path="other.py", b=9),
    ):
        assert not identities & set(_identities(other))


def test_the_path_as_given_does_not_matter(
    real: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    source = real.sources["box_sum.py"]
    for path in ("./box_sum.py", str(tmp_path / "box_sum.py"), "x/../box_sum.py"):
        assert _identities(report_on(source, path=path, b=9)) == _identities(real)


# --- workflow examples --------------------------------------------------------------------


@pytest.mark.parametrize("name, schema", [("github", "github-workflows"), ("gitlab", "gitlab-ci")])
def test_the_examples_are_what_the_servers_accept(name: str, schema: str) -> None:
    from ruamel.yaml import YAML

    document = YAML(typ="safe").load(ROOT / "examples" / "ci" / f"{name}.yml")
    official_schemas.pipeline(schema).validate(document)


@pytest.mark.parametrize(
    ("name", "machine"),
    [("action", ""), ("action", "profiles/ci.json"), ("gitlab", "profiles/ci.json")],
)
def test_the_examples_commands_run(
    name: str, machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each step as the server does, in bash, but for installing and for sending anything."""
    from ruamel.yaml import YAML

    document = YAML(typ="safe").load(ROOT / "examples" / "ci" / f"{name}.yml")
    if name == "action":
        steps = [
            (step["run"], step.get("env", {}))
            for step in document["runs"]["steps"]
            if "run" in step
        ]
    else:
        steps = [(step, {}) for step in document["advise"]["script"]]
    installs, *checks = steps
    assert installs[0].startswith("pip install ")
    project = tmp_path / "project"
    (project / "profiles").mkdir(parents=True)
    profile = (ROOT / "machine_profiles" / "t3e.json").read_text()
    (project / "profiles" / "ci.json").write_text(profile)
    if machine:
        (project / "pyproject.toml").write_text(f'[tool.advise]\nmachine = "{machine}"\n')
    # in a checkout of the repository, as a submodule of the one that is checked
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text('#!/bin/sh\necho "$@" > "$GH_SAID"\n')
    (tools / "gh").chmod(0o755)
    bin_folder = Path(sys.executable).parent
    given = {
        "PATH": f"{tools}:{bin_folder}:{os.environ['PATH']}",
        "GH_SAID": str(tmp_path / "said"),
        "ADVISE_DATA_DIR": str(tmp_path / "data"),
    }
    values = {
        "inputs.paths": ".",
        "inputs.fail-above": "1.2",
        "github.token": "token",
        "github.event.pull_request.number": "7",
    }
    # what may be slower passes, a clear gain does not
    for example, ends in (("box_sum", 0), ("radix_sort", 1 if machine else 0)):
        (project / "k.py").write_text((ROOT / "examples" / f"{example}.py").read_text())
        codes = []
        for command, stated in checks:
            if "--output-format markdown" in command and "markdown" not in FORMATS:
                continue
            known = {
                key: values.get(
                    text.removeprefix("${{ ").removesuffix(" }}"), "https://forge/blob/1"
                )
                for key, text in stated.items()
            }
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", command],
                cwd=project,
                env={**os.environ, **given, **known},
                capture_output=True,
                text=True,
                check=False,
            )
            codes.append(done.returncode)
            assert done.stderr == "" or not machine, done.stderr
            assert ("no machine is named here" in done.stderr) == (not machine)
        assert codes == [*([0] * (len(codes) - 1)), ends], codes
    reports = list(project.glob("advise.[sj]*"))
    assert len(reports) == bool(machine)
    if machine and name == "action":
        log = json.loads(reports[0].read_text())
        for rule in log["runs"][0]["tool"]["driver"]["rules"]:
            assert rule["helpUri"].startswith("https://forge/blob/1/transforms/")
            assert (ROOT / rule["helpUri"].removeprefix("https://forge/blob/1/")).is_file()


def test_the_action_is_one() -> None:
    from ruamel.yaml import YAML

    document = YAML(typ="safe").load(ROOT / "examples" / "ci" / "action.yml")
    official_schemas.pipeline("github-actions").validate(document)
    # it installs the repository that it lies in
    assert (ROOT / "examples" / "ci" / ".." / ".." / "pyproject.toml").is_file()
