"""Build self-contained HTML pages: one file, no script, nothing from a network."""

from __future__ import annotations

import html

from artlas.figures import INK, MUTED, PALE

STYLE = (
    f"body{{font:16px/1.5 system-ui,sans-serif;color:{INK};max-width:62rem;margin:2rem auto;"
    f"padding:0 1rem}}h1{{font-size:1.7rem;margin:0}}h2{{font-size:1.15rem;margin:2rem 0 .2rem}}"
    f"p{{margin:.3rem 0 .8rem;color:{MUTED};max-width:46rem}}.lead{{color:{INK};font-size:1.1rem}}"
    ".row{display:flex;flex-wrap:wrap;gap:1.5rem}figure{margin:0}figcaption{font-size:.85rem;"
    f"color:{MUTED}}}svg{{max-width:100%;height:auto}}table{{border-collapse:collapse;"
    "font-variant-numeric:tabular-nums;font-size:.9rem}td,th{padding:.15rem 1.1rem .15rem 0;"
    f"text-align:right}}th{{font-weight:600;border-bottom:1px solid {PALE}}}"
)


def document(title: str, body: str, style: str = "") -> str:
    """Wrap an HTML body in a page; ``title`` is plain text, ``style`` extends the shared CSS."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<style>{STYLE}{style}</style><body>{body}</body></html>\n"
    )
