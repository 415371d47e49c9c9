"""Asks the server for the example of this folder, over REST; needs Python alone.

python3 rest_client.py [URL]
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent


def ask(url: str, body: bytes) -> dict:  # type: ignore[type-arg]
    """The answer to a request of the Open Inference Protocol (v2)."""
    name = json.loads((HERE.parent / "model" / "service.json").read_text("utf-8"))["name"]
    path = f"{url.rstrip('/')}/v2/models/{quote(name, safe='')}/infer"
    request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main() -> None:
    """Print each output beside the trained model's."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8501"
    answer = ask(url, (HERE / "example.json").read_bytes())
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    for output in answer["outputs"]:
        print(output["name"], output["shape"])
        print("  server        ", *output["data"][:10], "..." if len(output["data"]) > 10 else "")
        print("  trained model ", *expected[output["name"]][:10], "..." if len(expected[output["name"]]) > 10 else "")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"status {error.code}: {error.read()[:500].decode('utf-8', 'replace')}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"the server gives no answer: {error}")
