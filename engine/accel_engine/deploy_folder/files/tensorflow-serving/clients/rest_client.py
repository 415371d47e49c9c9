"""Asks TensorFlow Serving for the example of this folder, over REST; needs Python alone.

python3 rest_client.py [URL]
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Print the answer beside the trained model's."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8501"
    served = json.loads((HERE.parent / "examples.json").read_text("utf-8"))
    path = f"{url.rstrip('/')}/v1/models/{quote(served['name'], safe='')}:predict"
    body = (HERE / "example-v1.json").read_bytes()
    request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        outputs = json.load(answer)["outputs"]
    names = list(served["outputs"])
    outputs = outputs if isinstance(outputs, dict) and set(outputs) >= set(names) else {names[0]: outputs}
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    for name, found in outputs.items():
        print(name)
        print("  server        ", json.dumps(found)[:200])
        if name in expected:
            print("  trained model ", json.dumps(expected[name])[:200])


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"status {error.code}: {error.read()[:500].decode('utf-8', 'replace')}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"the server gives no answer: {error}")
