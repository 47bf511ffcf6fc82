"""Download raw files from where PyTorch Geometric and the Open Graph Benchmark keep them."""

from __future__ import annotations

import contextlib
import importlib
import os
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn

from artlas.errors import ReadError
from artlas.files.atomic import atomic
from artlas_paper.datasets import raw
from artlas_paper.datasets.raw import Progress
from artlas_paper.datasets.registry import DatasetError, Entry

TIMEOUT = 30.0  # seconds without a byte
MOST_BYTES = 4 << 30
BLOCK = 1 << 18
OGB = {
    "hiv.zip": "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip",
    "arxiv.zip": "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
}


def addresses(entry: Entry) -> dict[str, str]:
    """Return the address of every file to fetch: of the archive, or of the raw files."""
    if entry.family == "OGB":
        assert entry.archive is not None
        return {entry.archive: OGB[entry.archive]}
    datasets = _pyg_datasets()
    if entry.family == "TU":
        return {f"{entry.archive}": f"{datasets.TUDataset.url}/{entry.archive}"}
    if entry.family == "Reddit":
        return {f"{entry.archive}": datasets.Reddit.url}
    base = (datasets.Planetoid if entry.family == "Planetoid" else datasets.Amazon).url
    return {name: f"{base.rstrip('/')}/{name}" for name in entry.files}


def _pyg_datasets() -> Any:
    try:
        return importlib.import_module("torch_geometric.datasets")
    except ImportError as error:
        raise ImportError(
            "The addresses of this dataset are those of PyTorch Geometric, which is not installed. "
            "To fix this: pip install 'artlas[pyg]'"
        ) from error


def download_files(entry: Entry, root: Path, report: Progress) -> None:
    """Download the raw files that are missing; an archive is unpacked and then removed."""
    folder = root / entry.folder
    place = folder if entry.archive is None else folder.parent
    for name, address in addresses(entry).items():
        path = place / name
        if entry.archive is None and path.is_file():
            continue
        by_hand = (
            f"fetch it by other means and put it, as {name}, into {place}; "
            f"then run: {raw.prepare_command(entry, root)}"
        )
        fetch(address, path, by_hand, report)
        if entry.archive is not None:
            report(f"unpacking {name}", 0, None)
            try:
                raw.unpack(entry, root, path)
            except ReadError as error:
                _give_up(address, str(error), by_hand, error)
            finally:
                path.unlink(missing_ok=True)
            if absent := raw.absent_files(entry, root):
                _give_up(address, f"it does not hold {', '.join(absent)}", by_hand)


def fetch(address: str, path: Path, by_hand: str, report: Progress) -> None:
    """Download one address into a file, which appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(address, headers={"User-Agent": "artlas"})
    try:
        # The default context verifies certificates and host names.
        context = ssl.create_default_context()
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:
            if address.startswith("https:") and not response.geturl().startswith("https:"):
                _give_up(
                    address, f"it leads to {response.geturl()}, without a certificate", by_hand
                )
            _copy(response, address, path, by_hand, report)
    except urllib.error.HTTPError as error:
        _give_up(address, f"the server answers {error.code} {error.reason}", by_hand, error)
    except urllib.error.URLError as error:
        _give_up(address, f"{error.reason}", by_hand, error)
    except (TimeoutError, ConnectionError, HTTPException, ssl.SSLError) as error:
        _give_up(address, str(error) or type(error).__name__, by_hand, error)


def _copy(response: Any, address: str, path: Path, by_hand: str, report: Progress) -> None:
    total: int | None = None
    with contextlib.suppress(TypeError, ValueError):
        total = int(response.headers.get("Content-Length"))
    if total is not None and total > MOST_BYTES:
        _give_up(address, f"it has {total:,} bytes, more than {MOST_BYTES:,}", by_hand)
    done = 0
    with atomic(path) as out:
        while block := response.read(BLOCK):
            done += len(block)
            if done > MOST_BYTES:
                _give_up(address, f"it has more than {MOST_BYTES:,} bytes", by_hand)
            out.write(block)
            report(f"fetching {os.path.basename(path)}", done, total)
        # A lost connection looks like the end of the file to read().
        if total is not None and done != total:
            _give_up(address, f"it ended after {done:,} of {total:,} bytes", by_hand)


def _give_up(
    address: str, reason: str, by_hand: str, cause: BaseException | None = None
) -> NoReturn:
    raise DatasetError(
        f"{address} could not be fetched: {reason.rstrip('.')}. To fix this, try again, or "
        f"{by_hand}"
    ) from cause
