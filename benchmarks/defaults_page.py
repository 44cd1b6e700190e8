"""Tables and picture of the study of defaults, from its numbers."""

from __future__ import annotations

import numpy as np

from pages import table

TUNED, UNPENALISED = "Supervised, tuned", "Supervised, no penalty"
NEW, OLD_COMMAND, OLD_PYTHON = SETTINGS = ("new", "old command line", "old Python")


def name_of(method, setting):
    """Return what a classifier is called in the tables."""
    return f"{method}, {setting}"


MODELS = [name_of(m, s) for m in ("Projection", "ICLS") for s in SETTINGS] + [UNPENALISED]
COMPARED = ["raw", "clipped", "error"]
WORSE = ["worse: raw", "worse: clipped", "worse: error"]


def tables_of(cells):
    """Return all tables, each under a line that says what it has."""
    against = {name: cells[cells["against"] == name] for name in (TUNED, UNPENALISED)}
    parts = {
        f"{n} labels, {_count(found)}": table(
            ["against the tuned baseline", *COMPARED, *WORSE, "unchanged"],
            [[m, *_means(found, m), _unchanged(found, m)] for m in MODELS],
            "",
        )
        for n, found in against[TUNED].groupby("labels")
    }
    parts["Without a penalty, against the baseline without a penalty"] = _own(against[UNPENALISED])
    parts["What the certificates of the projection promise"] = _certificates(against[TUNED])
    for method in ("Projection", "ICLS"):
        parts[f"{method} on each data set, against the tuned baseline"] = _each(
            against[TUNED], method
        )
    return "\n\n".join(f"**{title}**\n\n{part}" for title, part in parts.items())


STYLES = {  # colours of Okabe and Ito; shapes differ as well
    NEW: ("o", "#0072B2"),
    OLD_COMMAND: ("D", "#D55E00"),
    OLD_PYTHON: ("^", "#595959"),
}
APART = 0.13  # of the lines of one data set, which are 1 from those of the next


def draw(cells, method="Projection"):
    """Draw the mean ratios of a method: a panel for each number of labels."""
    from matplotlib.figure import Figure

    against = cells[cells["against"] == TUNED]
    sizes, names = against["labels"].unique(), list(against["dataset"].unique())
    figure = Figure(figsize=(9.5, 1.6 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0]
    for ax, n in zip(axes, sizes, strict=True):
        for band in range(0, len(names), 2):
            ax.axhspan(band - 0.5, band + 0.5, color="#f2f2f2", zorder=0)
        ax.axvline(1.0, color="black", linewidth=0.8)
        of_size = against[against["labels"] == n]
        for k, setting in enumerate(SETTINGS):
            chosen = of_size[of_size["model"] == name_of(method, setting)]
            bands = np.array([names.index(name) for name in chosen["dataset"]])
            marker, colour = STYLES[setting]
            for j, (what, face) in enumerate({"raw": colour, "clipped": "white"}.items()):
                heights = bands + APART * (2 * k + j - 2.5)
                style = {"marker": marker, "facecolor": face, "edgecolor": colour}
                label = f"{setting}, {what}" if ax is axes[0] else None
                ax.scatter(chosen[what], heights, s=20, linewidth=1.1, label=label, **style)
        for band in np.flatnonzero(~np.isin(names, of_size["dataset"].unique())):
            ax.text(1.03, band, "too few rows", va="center", fontsize=8, color="#595959")
        ax.set_title(f"{n} labels", fontsize=10)
        ax.set_xscale("log")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    axes[0].set_yticks(range(len(names)), names)
    ticks = [t for t in (0.8, 1, 1.5, 2, 3, 5, 10) if t <= axes[0].get_xlim()[1]]
    axes[0].set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes[0].minorticks_off()
    figure.supxlabel("held-out loss, divided by that of the tuned baseline", fontsize=10)
    figure.legend(loc="outside upper center", ncols=len(SETTINGS), frameon=False, fontsize=9)
    return figure


def _own(cells):
    rows = [
        [name_of(method, OLD_PYTHON), int(n), *_means(found, name_of(method, OLD_PYTHON))]
        for method in ("Projection", "ICLS")
        for n, found in cells.groupby("labels")
    ]
    return table(["", "labels", *COMPARED, *WORSE], rows, "")


def _certificates(cells):
    header = ["", "labels", "guaranteed", "labeled rows", "unlabeled rows, worst case"]
    header += ["unchanged", "outside if unchanged", "outside if changed"]
    rows = []
    for setting in SETTINGS:
        model = name_of("Projection", setting)
        for n, found in cells.groupby("labels"):
            chosen = found[found["model"] == model]
            guaranteed, labeled = 100.0 * chosen[["guaranteed", "from_labeled"]].mean()
            parts = (guaranteed, labeled, guaranteed - labeled)
            outside = chosen[["outside_unchanged", "outside_changed"]].mean()
            rows.append([model, int(n), *(_signed(v, 2) for v in parts), _unchanged(found, model)])
            rows[-1] += ["" if np.isnan(v) else f"{100.0 * v:.0f} %" for v in outside]
    return table(header, rows, "")


def _each(cells, method):
    wanted = [name_of(method, setting) for setting in SETTINGS]
    header = ["data set", "labels", "unlabeled", "baseline"]
    header += [f"{setting}: {what}" for setting in SETTINGS for what in (*COMPARED, "worse")]
    rows = []
    for (dataset, n), found in cells.groupby(["dataset", "labels"], observed=True, sort=False):
        by_model = found.set_index("model").loc[wanted]
        baseline = by_model.iloc[0]
        rows.append([dataset, n, round(baseline["unlabeled"]), _baseline(baseline)])
        for _, cell in by_model.iterrows():
            rows[-1] += [_ratio(cell["raw"]), _ratio(cell["clipped"]), _signed(cell["error"], 1)]
            rows[-1].append(" / ".join(f"{100.0 * cell[f'{c}_worse']:.0f}" for c in COMPARED))
    return table(header, rows, "")


def _means(cells, model):
    """Return the means over data sets, with standard errors that come from the repeats."""
    chosen = cells[cells["model"] == model]
    mean = chosen[COMPARED].mean()
    squares = (chosen[[f"{what}_se" for what in COMPARED]] ** 2).sum().to_numpy()
    errors = np.sqrt(squares) / len(chosen)
    texts = [
        f"{text} ± {error:.{digits}f}"
        for text, error, digits in zip(
            (_ratio(mean["raw"]), _ratio(mean["clipped"]), _signed(mean["error"], 2)),
            errors,
            (3, 3, 2),
            strict=True,
        )
    ]
    return texts + [f"{100.0 * chosen[f'{what}_worse'].mean():.0f} %" for what in COMPARED]


def _unchanged(cells, model):
    share = cells.loc[cells["model"] == model, "changed"].mean()
    return "" if np.isnan(share) else f"{100.0 * (1.0 - share):.0f} %"


def _baseline(cell):
    losses = f"{cell['raw_baseline']:.3f} / {cell['clipped_baseline']:.3f}"
    return f"{losses} / {100.0 * cell['error_baseline']:.1f} %"


def _count(cells):
    n = cells["dataset"].nunique()
    return f"{n} data set{'s' if n > 1 else ''}"


def _ratio(value):
    return f"{value:.3f}"


def _signed(value, digits):
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text[1:] if not float(text[1:]) else text  # zero has no sign
