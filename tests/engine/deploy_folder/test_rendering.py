"""Texts from a run cannot change the meaning of a file, whatever they are."""

import json
import shlex
import subprocess

import pytest
import yaml

from accel_engine.deploy_folder import rendering
from accel_engine.deploy_folder.rendering import (
    Block,
    compose_text,
    dns_label,
    dockerfile_text,
    markdown_text,
    rendered,
    shell_text,
    yaml_text,
)

NASTY = [
    "plain",
    "",
    "a \"quoted\" and 'single' \\ name",
    "two\nlines: - x\r\n# comment",
    "$(touch /tmp/x) `id` ${HOME} $HOME",
    "{{ .Values.x }} {% x %} @{name}",
    "grün 😀 \u202e\u2028 \ufeff \uffff",
    "* [x](y) <script> | & _a_ ~~b~~ # c",
    "null",
    "yes",
    "1e3",
    "\x1b[31mred\x1b[0m \x00 \x85",
    "%TAG ! : &a *b ?",
]


@pytest.mark.parametrize("text", NASTY)
def test_quotes_for_yaml_and_json(text: str) -> None:
    assert yaml.safe_load(f"key: {yaml_text(text)}") == {"key": rendering.clean(text)}
    assert json.loads(yaml_text(text)) == rendering.clean(text)
    assert yaml.safe_load(f"key: {compose_text(text)}")["key"].replace("$$", "$") == rendering.clean(text)


@pytest.mark.parametrize("text", NASTY)
def test_quotes_for_a_shell(text: str) -> None:
    done = subprocess.run(["sh", "-c", f"printf %s {shell_text(text)}"], capture_output=True, check=True)

    assert done.stdout.decode() == rendering.clean(text)


@pytest.mark.parametrize("text", NASTY)
def test_quotes_for_a_dockerfile(text: str) -> None:
    word = dockerfile_text(text)

    assert shlex.split(word.replace("\\$", "$")) == [rendering.clean(text)]
    assert "$" not in word.replace("\\\\", "").replace("\\$", ""), "a variable would be replaced"


@pytest.mark.parametrize("text", NASTY)
def test_no_text_is_more_than_a_line(text: str) -> None:
    for quote in (yaml_text, compose_text, dockerfile_text, shell_text, markdown_text):
        assert len(quote(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two_words", "two_words"),
        ("_emphasis_", r"\_emphasis\_"),
        ("a|b", r"a\|b"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("[x](http://y)", r"\[x\](http://y)"),
        ("`code` *bold* $math$", r"\`code\` \*bold\* \$math\$"),
    ],
)
def test_shows_a_text_in_markdown_as_it_is(text: str, expected: str) -> None:
    assert markdown_text(text) == expected


@pytest.mark.parametrize("text", NASTY)
def test_names_are_labels(text: str) -> None:
    assert all(each.isascii() and (each.isalnum() or each == "-") for each in dns_label(text))
    assert dns_label(text)[0].isalpha()
    assert dns_label(text)[-1].isalnum()
    assert len(dns_label("x" * 300)) == 40


def test_values_are_not_searched_for_placeholders(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(rendering, "TEMPLATES", tmp_path)
    (tmp_path / "a.yaml").write_text("name: @{name}\n  @{block}\nlast: @{number}\n@{none}\n")

    text = rendered(
        "a.yaml", {"name": "@{number}", "block": Block("x: @{name}\ny:\n  - 1"), "number": 3, "none": Block("")}
    )

    assert text == 'name: "@{number}"\n  x: @{name}\n  y:\n    - 1\nlast: 3\n'
    with pytest.raises(KeyError):
        rendered("a.yaml", {})
