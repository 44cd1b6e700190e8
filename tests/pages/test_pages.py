"""One kit for all pages: what comes from outside is text, whatever it looks like."""

import re
from types import SimpleNamespace

import pytest

from neverworse import _palette
from neverworse.pages import Markup, digest, picture, render

NASTY = "<script>alert('x')</script>\"&"
SAFE = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;"


def made(title=NASTY, n=3):
    return render(
        "tests.pages",
        "some.html",
        title=title,
        third=1 / 3,
        advice="Try --class-weight <b>.",
        found=SimpleNamespace(value=0.25, low=-0.1, high=0.6),
        source=picture(b"x"),
        n=n,
    )


def test_text_is_escaped_and_markup_is_not():
    page = made()
    assert NASTY not in page
    assert page.count(SAFE) == 12
    marked = made(Markup("<b>x</b>"))
    assert '<p class="caption"><b>x</b></p>' in marked
    assert 'aria-label="x"' in marked


def test_the_policy_allows_what_is_in_the_page_and_nothing_else():
    page = made()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        found = re.search(rf"^<{kind}>(.*?)</{kind}>$", page, re.S | re.M)[1]
        assert f"{kind}-src '{digest(found)}'" in policy
    assert not re.search(r"https?://", page)


def test_a_page_has_the_colours_of_the_palette_in_light_dark_and_print():
    style = re.search(r"<style>(.*?)</style>", made(), re.S)[1]
    assert set(_palette.LIGHT) == set(_palette.DARK) == set(_palette.PRINT)
    for palette in (_palette.LIGHT, _palette.DARK, _palette.PRINT):
        for role, colour in palette.items():
            assert f"--{role}: {colour};" in style
    used = set(re.findall(r"var\(--([a-z]+)\)", style))
    assert used <= set(_palette.LIGHT)


@pytest.mark.parametrize("palette", [_palette.LIGHT, _palette.DARK, _palette.PRINT])
def test_colours_can_be_read_on_their_ground(palette):
    ground = luminance(palette["ground"])
    for role, colour in palette.items():
        if role not in ("ground", "panel", "line", "hover"):
            dark, light = sorted([ground, luminance(colour)])
            assert (light + 0.05) / (dark + 0.05) > 4.5, role  # of WCAG, for text


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_tables_name_their_rows_and_columns():
    page = made("A & B")
    assert '<th scope="col">A &amp; B</th><th scope="col" class="number">n</th>' in page
    assert '<th scope="row">A &amp; B</th><td>1</td>' in page
    assert 'class="scroll" tabindex="0" role="region" aria-label="A &amp; B"' in page


@pytest.mark.parametrize(
    ("n", "said"), [(3, 'Rows.</p>\n<div class="scroll sortable"'), (600, "Rows. The 500 first")]
)
def test_long_tables_say_where_the_rest_is(n, said):
    page = made(n=n)
    assert said in page
    assert page.count("<tr>") == 3 + min(n, 500)
    assert ("500 first of 600; others are elsewhere." in page) == (n == 600)
    assert ("Not on paper: 460 more rows of this table." in page) == (n == 600)
    assert ("sortable long" in page) == (n == 600)


def test_numbers_carry_all_their_digits():
    page = made()
    assert '<data value="0.3333333333333333">0.3333</data> \N{EN DASH} ' in page
    ends = "(\N{MINUS SIGN}0.100 to +0.600)"
    assert f'<data value="0.25">+0.250 <span class="ends">{ends}</span></data>' in page


def test_options_are_not_broken_at_their_hyphens():
    assert '<li>Try <code class="option">--class-weight</code> &lt;b&gt;.</li>' in made()


def test_pictures_are_part_of_the_page_and_described():
    assert f'<img src="data:image/png;base64,eA==" alt="{SAFE}" width="10" height="20">' in made()
