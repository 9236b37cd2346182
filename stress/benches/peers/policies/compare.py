#!/usr/bin/env python3
"""Ten intents in the language of four engines, over the same objects: which cases each judges right, and at what cost.

    compare.py OBJECTS RUNS MEMGATE [KYVERNO] [GATOR] [VAP]

tools/bench-policies.sh builds the programs and calls this; an empty name is a program that is not there. cases.yaml has a
hundred cases, each with the intent that it is about and whether its subject breaks it. They are written out as often as
makes so many objects, each time in namespaces of their own. A case is right if the engine names the subject of every copy
under the case's intent exactly when the case says so; what it says under other intents does not count. memgate has to
be right in all of them.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
SUBJECT = "subject"


def documents(case, namespace):
    """The Namespace of a case, its subject and the other objects."""
    team = case.get("team", "heron")
    labels = {} if team is None else {"team": team}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    for number, thing in enumerate(case["objects"]):
        text = json.dumps(thing).replace("TEAM", team or "heron").replace("NS", namespace)
        thing = json.loads(text)
        metadata = thing.setdefault("metadata", {})
        metadata.setdefault("name", SUBJECT if number == 0 else f"other-{number}")
        if thing["kind"] != "ArkConfig":
            metadata["namespace"] = namespace
        yield thing


def write_manifests(folder, objects):
    """Writes a file for each copy of a case, and returns how many copies and objects there are."""
    in_one = sum(1 + len(case["objects"]) for case in CASES)
    copies, written, singles = -(-objects // in_one), 0, set()
    for copy in range(copies):
        for number, case in enumerate(CASES):
            namespace = f"n{number}-{copy}"
            things = []
            for thing in documents(case, namespace):
                if "namespace" in thing["metadata"] or thing["kind"] == "Namespace":
                    things.append(thing)
                elif thing["kind"] not in singles:
                    singles.add(thing["kind"])
                    things.append(thing)
            written += len(things)
            (folder / f"{namespace}.yaml").write_text(yaml.safe_dump_all(things, sort_keys=False))
    return copies, written


def of_memgate(output):
    for finding in json.loads(output)["findings"]:
        code = finding["code"].split("/")
        if code[0] == "policy" and finding["severity"] != "note":
            yield finding["object"]["namespace"], finding["object"]["name"], code[2]


def of_kyverno(output):
    for report in values(output):
        for result in report["results"]:
            if result["result"] in ("fail", "error"):
                thing = result["resources"][0]
                yield thing.get("namespace", ""), thing["name"], result.get("rule") or result["policy"]


def of_gator(output):
    for result in json.loads(output):
        metadata = result["violatingObject"]["metadata"]
        yield metadata.get("namespace", ""), metadata["name"], result["constraint"]["metadata"]["name"]


def of_vap(output):
    for result in json.loads(output):
        yield result["namespace"], result["name"], result["policy"]


def values(text):
    """The JSON values in a text that may have other lines around them."""
    at = text.find("\n{") if not text.startswith("{") else 0
    while at >= 0:
        value, at = json.JSONDecoder().raw_decode(text, text.index("{", at))
        yield value
        at = text.find("\n{", at)


def right(found, copies):
    """The cases that are judged right in every copy."""
    subjects = {(namespace, rule.split("-")[0]) for namespace, name, rule in found if name in (SUBJECT, "memory", "browser")}
    for number, case in enumerate(CASES):
        said = {(f"n{number}-{copy}", case["intent"]) in subjects for copy in range(copies)}
        if said == {case["breaks"]}:
            yield number


def lines(folder):
    """The lines of policies that are neither blank nor a comment."""
    texts = [path.read_text() for path in sorted((HERE / folder).iterdir())]
    return sum(bool(re.match(r"\s*[^\s#]", line)) and line != "---" for text in texts for line in text.splitlines())


def run(command):
    """Standard output, and seconds, seconds of CPU and MiB at the most; GNU time forks, so the peak is the child's own."""
    with tempfile.NamedTemporaryFile("r") as figures:
        done = subprocess.run(
            ["/usr/bin/time", "-q", "-o", figures.name, "-f", "%e %U %S %M", *command], capture_output=True, text=True
        )
        wall, user, system, peak = map(float, figures.read().split())
    if done.returncode > 1:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout, (wall, user + system, peak / 1024)


def main():
    objects, runs, memgate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    kyverno, gator, vap = (sys.argv[4:] + ["", "", ""])[:3]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        copies, written = write_manifests(folder, objects)
        check = ["check", "--project", "none", "--policy", HERE / "memgate", "-o", "json", folder]
        apply = ["apply", HERE / "kyverno-cel", "-r", folder, "--policy-report", "--output-format", "json"]
        engines = [
            ("memgate check", "memgate", memgate, check, of_memgate),
            ("kyverno apply, ValidatingPolicy", "kyverno-cel", kyverno, apply, of_kyverno),
            ("gator test", "gatekeeper", gator, ["test", "-f", HERE / "gatekeeper", "-f", folder, "-o", "json"], of_gator),
            ("ValidatingAdmissionPolicy", "vap", vap, [HERE / "vap/policies.yaml", folder], of_vap),
        ]
        engines = [engine for engine in engines if engine[2]]
        figures, judged = {}, {}
        for name, _, program, arguments, read in engines:
            rows = []
            for _ in range(runs):
                output, figure = run([program, *map(str, arguments)])
                rows.append(figure)
            figures[name] = [statistics.median(column) for column in zip(*rows)]
            judged[name] = set(right(read(output), copies))
            print(f"{name} is done", file=sys.stderr)
    print(f"{written} objects: {len(CASES)} cases, {copies} times; the median of {runs} runs\n")
    print("| | lines written | cases right | seconds | CPU, seconds | peak memory, MiB |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, language, *_ in engines:
        wall, cpu, peak = figures[name]
        print(f"| {name} | {lines(language)} | {len(judged[name])} | {wall:.1f} | {cpu:.1f} | {peak:.0f} |")
    intents = list(dict.fromkeys(case["intent"] for case in CASES))
    print("\nRight of ten, by intent:\n")
    print(f"| | {' | '.join(intents)} |\n|---|{'--:|' * len(intents)}")
    for name, *_ in engines:
        of_intents = [sum(CASES[number]["intent"] == intent for number in judged[name]) for intent in intents]
        print(f"| {name} | {' | '.join(map(str, of_intents))} |")
        for number in sorted(set(range(len(CASES))) - judged[name]):
            case = CASES[number]
            print(f"{name}: {case['intent']}, {json.dumps(case['objects'][0])} breaks: {case['breaks']}", file=sys.stderr)
    if len(judged["memgate check"]) < len(CASES):
        sys.exit(1)


if __name__ == "__main__":
    main()
