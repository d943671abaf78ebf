"""Check the files of a report: JSON against its schema, every sample with a kernel in all of them.

python .ci/check_report.py R.json R.md R.html
"""

import json
import sys
from pathlib import Path

import jsonschema
from qd_studio.engine import inspect


def main(record_path: str, *texts: str) -> None:
    record = json.loads(Path(record_path).read_text(encoding="utf-8"))
    jsonschema.validate(record, inspect.schema())
    sources = {path.name: path.read_text("utf-8") for path in Path("sample_kernels").glob("*.py")}
    samples = sorted(name for name, source in sources.items() if "@qd.kernel" in source)
    assert samples, "there are no samples"
    for path in (record_path, *texts):
        text = Path(path).read_text(encoding="utf-8")
        missing = [name for name in samples if name not in text]
        assert not missing, f"{path} says nothing of {missing}"
    print(f"report: valid, {len(samples)} samples in {1 + len(texts)} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
