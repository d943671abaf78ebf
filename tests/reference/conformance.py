"""The conformance suite's stated results next to what the reference gives for the same programs.

So each of its features shows that behaviour as a case of the corpus does, on every backend: its
own tests compare backends with what is stated, and `faults` that with what was recorded.
"""

import hashlib
import inspect
import json
import re
import subprocess

from qd_studio.app.conformance import process
from qd_studio.app.conformance.feature import Feature
from qd_studio.app.conformance.run import difference

from . import corpus
from .differences import STATED

RECORDED = corpus.RECORDED / "conformance.json"
WORKER = corpus.HERE / "conformance_worker.py"


def digest(feature: Feature) -> str:
    """Of the feature's function; what its decorator states is compared, not digested."""
    text = re.sub(r"\A.*?^ *(?=def )", "", inspect.getsource(feature.run), flags=re.M | re.S)
    return hashlib.sha256("".join(text.split()).encode()).hexdigest()[:8]


def record(python: str) -> None:
    """Run every feature on the reference and keep what each gives, a line a group."""
    done = subprocess.run([python, str(WORKER)], stdout=subprocess.PIPE, text=True, check=True)
    digests = {feature.id: digest(feature) for feature in process.features()}
    groups: dict[str, dict] = {}
    for one in map(json.loads, done.stdout.splitlines()):
        name = one.pop("id")
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = {"digest": digests[name], **one}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(kept)}" for key, kept in groups.items())
    text = f'{{"recorded with": "{corpus.VERSION}", "groups": {{\n{lines}\n}}}}\n'
    RECORDED.write_text(text, encoding="utf-8")


def faults() -> dict[str, str]:
    """What is wrong with stated results, by feature. What the reference cannot run says nothing."""
    groups = json.loads(RECORDED.read_text(encoding="utf-8"))["groups"]
    found = {}
    for feature in process.features():
        group, _, name = feature.id.partition(".")
        kept = groups.get(group, {}).get(name, {})
        if kept.get("digest") != digest(feature):
            found[feature.id] = "the reference was not recorded"
            continue
        unlike = "value" in kept and difference(kept["value"], feature.gives, feature.rtol)
        if bool(unlike) != (feature.id in STATED):
            found[feature.id] = unlike or "listed as a deliberate difference, but there is none"
    return found
