"""The colours of everything that is drawn: pages, their charts, and figures of matplotlib.

They are the hues of Okabe and Ito, which people with any colour vision can tell apart, as dark on
white and as light on dark as text has to be. Markers and line styles differ as well, for print
without colour.
"""

_COLOURS = {  # by their roles: in light and in dark mode
    "ground": ("#ffffff", "#14181d"),
    "ink": ("#1b1f24", "#e6e9ed"),
    "soft": ("#57606a", "#a3acb6"),
    "line": ("#d0d7de", "#3a424c"),
    "panel": ("#f4f6f8", "#1e242b"),
    "link": ("#0b5cad", "#7cb7f2"),
    "good": ("#0a6b4d", "#5fd0a5"),
    "bad": ("#a63c00", "#ff9d66"),
    "supervised": ("#c2410c", "#ff9d5c"),
    "projected": ("#0b67b2", "#69b3f2"),
    "third": ("#0f7a5a", "#53cfa4"),
    "fourth": ("#9b4d86", "#e39fcf"),
    "fifth": ("#6b6f12", "#d0cf5a"),
    "sixth": ("#5b6470", "#a9b4c0"),
    "hover": ("rgb(27 31 36 / 0.1)", "rgb(230 233 237 / 0.14)"),
}
LIGHT = {role: light for role, (light, _) in _COLOURS.items()}
DARK = {role: dark for role, (_, dark) in _COLOURS.items()}
PRINT = LIGHT | {"ink": "#000000", "soft": "#444444", "panel": "#ffffff", "link": "#000000"}

# By their hues, for figures of matplotlib.
ORANGE, BLUE, GREEN = LIGHT["supervised"], LIGHT["projected"], LIGHT["third"]
PURPLE, GREY = LIGHT["fourth"], LIGHT["soft"]
SKY, LIGHT_GREY = DARK["projected"], DARK["soft"]
