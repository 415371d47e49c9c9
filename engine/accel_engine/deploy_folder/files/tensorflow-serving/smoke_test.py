"""Proves that TensorFlow Serving answers as the trained model did; needs Python alone.

python3 smoke_test.py [URL]

The exit status is 1 if an answer differs or fails.
"""

import json
import math
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parent


def flat(value: Any) -> list[Any]:
    """The values of nested lists."""
    return [each for part in value for each in flat(part)] if isinstance(value, list) else [value]


def with_numbers(value: Any) -> Any:
    """Nested lists with NaN, which TensorFlow Serving takes without quotes, for missing numbers."""
    if isinstance(value, dict):
        return {name: with_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [with_numbers(each) for each in value]
    return math.nan if value is None else value


def difference(found: Any, expected: Any) -> float:
    """How far two values are apart; infinite for texts that differ, and for NaN."""
    if isinstance(expected, str) or found is None or expected is None:
        is_missing = found is None or found != found
        return 0.0 if found == expected or (expected is None and is_missing) else math.inf
    return abs(float(found) - float(expected))


def problem_of(outputs: dict[str, Any], served: dict[str, Any]) -> str:
    """Why answers differ from the trained model's; empty if they do not."""
    for name, expected in served["outputs"].items():
        values, allowed = flat(outputs[name]), served["allowed"][name]
        if len(values) != len(expected):
            return f"{name} has {len(values)} values, not {len(expected)}"
        for at, (found, wanted) in enumerate(zip(values, expected, strict=True)):
            if not difference(found, wanted) <= allowed[at % len(allowed)]:
                return f"{name} is {found} where the trained model gave {wanted}"
    return ""


def main() -> int:
    """Send all examples in one request, and compare."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8501"
    served = json.loads((HERE / "examples.json").read_text("utf-8"))
    path = f"{url.rstrip('/')}/v1/models/{quote(served['name'], safe='')}:predict"
    body = json.dumps(with_numbers(served["request"])).encode()
    try:
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            outputs = json.load(answer)["outputs"]
    except urllib.error.HTTPError as error:
        print(f"NOT RIGHT: status {error.code}: {error.read()[:300].decode('utf-8', 'replace')}")
        return 1
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"NOT RIGHT: {path} gives no answer: {error}")
        return 1
    names = list(served["outputs"])
    outputs = outputs if isinstance(outputs, dict) and set(outputs) >= set(names) else {names[0]: outputs}
    if problem := problem_of(outputs, served):
        print(f"NOT RIGHT: {problem}")
        return 1
    print(f"{served['examples']} examples equal within the tolerance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
