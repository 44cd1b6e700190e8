"""The check of the built site finds what readers would stumble over."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "check_site.py"


def checked(folder, body):
    (folder / "other.html").write_text('<h1 id="there">Other</h1>', "utf-8")
    (folder / "picture.png").write_bytes(b"")
    (folder / "page.html").write_text(f"<body>{body}</body>", "utf-8")
    return subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False
    )


def test_a_good_site_passes(tmp_path):
    done = checked(
        tmp_path,
        '<a href="other.html#there">x</a> <a href="#here">x</a> <p id="here">x</p>'
        '<a href="https://example.org/missing">x</a> <img src="picture.png" alt="A dot">'
        '<img src="picture.png#_thumb.png" alt="">',
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="missing.html">x</a>', "no such file: missing.html (on page.html)"),
        ('<a href="other.html#gone">x</a>', "no such anchor: other.html#gone (on page.html)"),
        ('<a href="#gone">x</a>', "no such anchor: #gone"),
        ('<img src="picture.png">', "picture without a description: picture.png"),
        ('<img src="picture.png" alt=" ">', "picture without a description: picture.png"),
        ('<script src="https://example.org/a.js"></script>', "loaded from the network"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, body, said):
    done = checked(tmp_path, body)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_folder_without_pages_is_an_error(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no pages" in done.stderr
