"""The colours of everything that is drawn: pages, their charts, and figures of matplotlib.

They are the hues of Okabe and Ito, which people with any colour vision can tell apart, as dark on
white and as light on dark as text has to be. Markers and line styles differ as well, for print
without colour.
"""

LIGHT = {
    "ground": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "line": "#d0d7de",
    "panel": "#f4f6f8",
    "link": "#0b5cad",
    "good": "#0a6b4d",
    "bad": "#a63c00",
    "supervised": "#c2410c",
    "projected": "#0b67b2",
    "third": "#0f7a5a",
    "fourth": "#9b4d86",
    "fifth": "#6b6f12",
    "sixth": "#5b6470",
    "hover": "rgb(27 31 36 / 0.1)",
}
DARK = {
    "ground": "#14181d",
    "ink": "#e6e9ed",
    "soft": "#a3acb6",
    "line": "#3a424c",
    "panel": "#1e242b",
    "link": "#7cb7f2",
    "good": "#5fd0a5",
    "bad": "#ff9d66",
    "supervised": "#ff9d5c",
    "projected": "#69b3f2",
    "third": "#53cfa4",
    "fourth": "#e39fcf",
    "fifth": "#d0cf5a",
    "sixth": "#a9b4c0",
    "hover": "rgb(230 233 237 / 0.14)",
}
PRINT = LIGHT | {"ink": "#000000", "soft": "#444444", "panel": "#ffffff", "link": "#000000"}

# By their hues, for figures of matplotlib.
ORANGE, BLUE, GREEN = LIGHT["supervised"], LIGHT["projected"], LIGHT["third"]
PURPLE, OLIVE, GREY = LIGHT["fourth"], LIGHT["fifth"], LIGHT["soft"]
SKY, LIGHT_GREY = DARK["projected"], DARK["soft"]
