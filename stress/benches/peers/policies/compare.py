#!/usr/bin/env python3
"""`memgate check --policy` beside `kyverno apply` and `gator test`: the same five rules over the same manifests.

    compare.py MANIFESTS RUNS MEMGATE [KYVERNO] [GATOR]

tools/bench-policies.sh builds the programs and calls this; an empty name is a program that is not there. Each manifest
knows which rules it breaks, and on which line (`# breaks: RULE`), so that the answers of the three are compared with
what is right, not with each other: a pair of object and rule too many or too few ends the comparison with exit code 1.
Whether a line is right is counted, since two of the three name none.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def manifest(number):
    """An ArkMemory by its number, a line at a time; how often a rule is broken depends on the rule."""
    redis = number % 2 == 0
    backend = "in-context" if number % 10 == 9 else "redis" if redis else "vector-store"
    yield "apiVersion: arkonis.dev/v1alpha1"
    yield "kind: ArkMemory"
    yield "metadata:"
    yield f"  name: notes-{number}"
    yield f"  namespace: team-{number % 20}"
    if number % 8 == 3:
        yield "  labels: # breaks: team"
        yield "    purpose: notes"
    else:
        yield "  labels:"
        yield "    purpose: notes"
        yield f"    team: team-{number % 20}"
    yield "spec:"
    if backend == "in-context":
        yield "  backend: in-context # breaks: backends"
        return
    yield f"  backend: {backend}"
    # Without a number, Redis keeps entries for an hour, and a vector store keeps them for ever.
    lifetime = ["3600", "86400", "2592000", "2592001 # breaks: expiry", "0 # breaks: expiry", None][number % 6]
    if redis:
        yield "  redis:"
        yield "    maxEntries: 100"
    else:
        yield "  vectorStore:" if lifetime else "  vectorStore: # breaks: expiry"
        yield "    provider: qdrant"
        host = ["qdrant.team.svc", "a.vectors.internal", "qdrant.a.b.svc # breaks: hosts", "example.com # breaks: hosts"]
        name, _, broken = host[number // 2 % 4].partition(" ")
        yield f"    endpoint: http://{name}:6333/ {broken}".rstrip()
    if lifetime:
        yield f"    ttlSeconds: {lifetime}"
    if redis or number % 3 == 0:
        yield "    secretRef:"
        yield f"      name: {'shared # breaks: secrets' if number % 5 == 2 else f'memory-{number}'}"


def write_manifests(folder, count):
    """Writes a file each, and returns the broken rules: {(object, rule): (file, line)}."""
    expected = {}
    for number in range(count):
        lines = list(manifest(number))
        path = folder / f"{number}.yaml"
        path.write_text("\n".join(lines) + "\n")
        for at, line in enumerate(lines, 1):
            if "# breaks: " in line:
                expected[f"notes-{number}", line.rsplit(" ", 1)[1]] = (path.name, at)
    return expected


def of_memgate(output):
    for finding in json.loads(output)["findings"]:
        code = finding["code"].split("/")
        if code[0] == "policy":
            yield finding["object"]["name"], code[2], (pathlib.Path(finding["file"]).name, finding["line"])


def of_kyverno(output):
    for report in documents(output):
        for result in report["results"]:
            if result["result"] == "fail":
                yield result["resources"][0]["name"], result.get("rule") or result["policy"], None


def of_gator(output):
    for result in json.loads(output):
        yield result["violatingObject"]["metadata"]["name"], result["constraint"]["metadata"]["name"], None


def documents(text):
    """The JSON values in a text that may have others lines around them."""
    at = text.find("\n{") if not text.startswith("{") else 0
    while at >= 0:
        value, at = json.JSONDecoder().raw_decode(text, text.index("{", at))
        yield value
        at = text.find("\n{", at)


def run(command):
    """Standard output, and seconds, seconds of CPU and MiB at the most; GNU time forks, so the peak is the child's own."""
    with tempfile.NamedTemporaryFile("r") as figures:
        done = subprocess.run(
            ["/usr/bin/time", "-q", "-o", figures.name, "-f", "%e %U %S %M", *command], capture_output=True, text=True
        )
        wall, user, system, peak = map(float, figures.read().split())
    if done.returncode > 1:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout, (wall, user + system, peak / 1024)


def main():
    count, runs, memgate, kyverno, gator = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        expected = write_manifests(folder, count)
        apply = ["-r", folder, "--policy-report", "--output-format", "json"]
        tools = [
            ("memgate check", memgate, ["check", "--policy", HERE / "memgate", "-o", "json", folder], of_memgate),
            ("kyverno apply, ClusterPolicy", kyverno, ["apply", HERE / "kyverno", *apply], of_kyverno),
            ("kyverno apply, ValidatingPolicy", kyverno, ["apply", HERE / "kyverno-cel", *apply], of_kyverno),
            ("gator test", gator, ["test", "-f", HERE / "gatekeeper", "-f", folder, "-o", "json"], of_gator),
        ]
        tools = [(name, [program, *map(str, rest)], read) for name, program, rest, read in tools if program]
        figures = {name: [] for name, _, _ in tools}
        for _ in range(runs):
            for name, command, read in tools:
                output, figure = run(command)
                figures[name].append(figure)
                found = {(thing, rule): place for thing, rule, place in read(output)}
                if found.keys() != expected.keys():
                    wrong = sorted(found.keys() ^ expected.keys())
                    sys.exit(f"{name}: {len(found)} findings, not {len(expected)}; the difference begins with {wrong[:5]}")
                lines = sum(found[pair] == place for pair, place in expected.items())
                figures[name][-1] += (len(found), lines)
        print(f"{count} manifests, {len(expected)} broken rules; the median of {runs} runs\n")
        print("| | seconds | CPU, seconds | peak memory, MiB | findings | with the right line |")
        print("|---|--:|--:|--:|--:|--:|")
        for name, rows in figures.items():
            wall, cpu, peak, found, lines = map(statistics.median, zip(*rows))
            print(f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {found:.0f} | {lines:.0f} |")


if __name__ == "__main__":
    main()
