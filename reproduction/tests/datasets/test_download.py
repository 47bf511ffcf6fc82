"""Downloads, from a server on this machine: good ones, and every kind of bad one."""

from __future__ import annotations

import http.server
import threading
import types
import zipfile

import pytest
from tiny_datasets import TINY, TINY_SENTENCE, visible_parts, write_zip

from artlas_paper.datasets import REGISTRY, download, prepare
from artlas_paper.datasets.registry import DatasetError


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = self.server.answers.get(self.path)
        self.server.asked.append(self.path)
        if answer is None:
            self.send_error(404, "Not Found")
            return
        headers, body = answer
        self.send_response(302 if "Location" in headers else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.answers, made.asked = {}, []
    made.url = f"http://127.0.0.1:{made.server_address[1]}"
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(5)


@pytest.fixture
def tiny(monkeypatch, server, tmp_path):
    """An empty data root; the addresses of PyTorch Geometric's classes are on the server."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    monkeypatch.setitem(REGISTRY, "TINY", TINY)
    fake = types.SimpleNamespace(
        TUDataset=types.SimpleNamespace(url=f"{server.url}/tu"),
        Planetoid=types.SimpleNamespace(url=f"{server.url}/planetoid"),
        Amazon=types.SimpleNamespace(url=f"{server.url}/npz/"),
        Reddit=types.SimpleNamespace(url=f"{server.url}/reddit.zip"),
    )
    monkeypatch.setattr(download, "_pyg_datasets", lambda: fake)
    return tmp_path / "root"


def give(server, path, body, **headers):
    named = {"Content-Length": str(len(body))} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    server.answers[path] = {k: v for k, v in named.items() if v is not None}, body


def good_zip(tmp_path, **more):
    return write_zip(tmp_path / "made.zip", **more).read_bytes()


def assert_nothing(root):
    assert not (root / TINY.folder / "TINY_A.txt").exists()
    assert not list(root.rglob("*.zip"))
    assert visible_parts(root) == []


def test_a_good_archive(server, tiny, tmp_path):
    give(server, "/tu/TINY.zip", good_zip(tmp_path))
    seen = []
    done = prepare("TINY", tiny, progress=lambda *args: seen.append(args))
    assert (done.done, done.check) == ("downloaded and packed it", TINY_SENTENCE)
    size = len(good_zip(tmp_path))
    assert ("fetching TINY.zip", size, size) in seen
    assert not list(tiny.rglob("*.zip"))  # removed once it is unpacked
    assert visible_parts(tiny) == []
    prepare("TINY", tiny)
    assert server.asked == ["/tu/TINY.zip"]


def test_without_a_length(server, tiny, tmp_path):
    give(server, "/tu/TINY.zip", good_zip(tmp_path), Content_Length=None)
    seen = []
    assert prepare("TINY", tiny, progress=lambda *args: seen.append(args)).check == TINY_SENTENCE
    assert ("fetching TINY.zip", len(good_zip(tmp_path)), None) in seen


def test_no_download_asks_nobody(server, tiny):
    with pytest.raises(DatasetError, match="TINY is not here"):
        prepare("TINY", tiny, download=False)
    assert server.asked == []


def test_not_found(server, tiny):
    with pytest.raises(DatasetError, match="the server answers 404 Not Found") as caught:
        prepare("TINY", tiny)
    text = str(caught.value)
    assert f"{server.url}/tu/TINY.zip" in text
    assert f"as TINY.zip, into {tiny / 'TUDataset' / 'TINY'}" in text
    assert_nothing(tiny)


def test_a_truncated_body(server, tiny, tmp_path):
    body = good_zip(tmp_path)
    give(server, "/tu/TINY.zip", body[:-10], Content_Length=str(len(body)))
    with pytest.raises(DatasetError, match=f"ended after {len(body) - 10} of {len(body)} bytes"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


def test_a_bomb(server, tiny, tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("TINY_A.txt", b"0" * 30_000_000)
    give(server, "/tu/TINY.zip", (tmp_path / "bomb.zip").read_bytes())
    with pytest.raises(DatasetError, match="unpacks to far too much"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


@pytest.mark.parametrize("told", [True, False])
def test_more_than_is_allowed(server, tiny, tmp_path, monkeypatch, told):
    monkeypatch.setattr(download, "MOST_BYTES", 100)
    body = good_zip(tmp_path)
    give(server, "/tu/TINY.zip", body, Content_Length=str(len(body)) if told else None)
    with pytest.raises(DatasetError, match=r"more than 100"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


def test_not_an_archive(server, tiny):
    give(server, "/tu/TINY.zip", b"<html>please log in</html>")
    with pytest.raises(DatasetError, match="not a zip archive"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


def test_an_archive_of_something_else(server, tiny, tmp_path):
    give(server, "/tu/TINY.zip", good_zip(tmp_path, files={"OTHER_A.txt": "1, 2\n"}))
    with pytest.raises(DatasetError, match=r"does not hold TINY_A\.txt"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


def test_nobody_answers(server, tiny, monkeypatch):
    server.shutdown()
    server.server_close()
    with pytest.raises(DatasetError, match="refused"):
        prepare("TINY", tiny)
    assert_nothing(tiny)


@pytest.mark.slow
def test_a_server_that_says_nothing(tiny, monkeypatch):
    import socket

    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/TINY.zip"
        with pytest.raises(DatasetError, match="timed out"):
            download.fetch(address, tiny / "TINY.zip", "by hand", lambda *args: None)
    assert_nothing(tiny)


def test_redirects_are_followed(server, tiny, tmp_path):
    give(server, "/elsewhere", good_zip(tmp_path))
    give(server, "/tu/TINY.zip", b"", Location="/elsewhere")
    assert prepare("TINY", tiny).check == TINY_SENTENCE


def test_a_redirect_must_not_drop_the_certificate(tiny, monkeypatch):
    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        def geturl(self):
            return "http://example.org/TINY.zip"

    monkeypatch.setattr(download.urllib.request, "urlopen", lambda *args, **more: Answer())
    with pytest.raises(DatasetError, match="without a certificate"):
        download.fetch("https://example.org/a", tiny / "a", "by hand", lambda *args: None)


def test_certificates_are_verified(tiny, monkeypatch):
    import ssl

    seen = {}

    def urlopen(request, **more):
        seen.update(more)
        raise OSError("stop here")

    monkeypatch.setattr(download.urllib.request, "urlopen", urlopen)
    with pytest.raises(OSError, match="stop here"):
        download.fetch("https://example.org/a", tiny / "a", "by hand", lambda *args: None)
    assert seen["context"].verify_mode == ssl.CERT_REQUIRED
    assert seen["context"].check_hostname
    assert seen["timeout"] == 5.0


def test_addresses(tiny, server):
    url = server.url
    assert download.addresses(REGISTRY["Reddit"]) == {"reddit.zip": f"{url}/reddit.zip"}
    name = "amazon_electronics_photo.npz"
    assert download.addresses(REGISTRY["Photo"]) == {name: f"{url}/npz/{name}"}
    found = download.addresses(REGISTRY["Cora"])
    assert len(found) == 8
    assert found["ind.cora.test.index"] == f"{url}/planetoid/ind.cora.test.index"
    assert download.addresses(REGISTRY["ogbg-molhiv"]) == {
        "hiv.zip": "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip"
    }


def test_the_addresses_of_pytorch_geometric_are_there():
    pytest.importorskip("torch_geometric", reason="its classes know the addresses")
    for name in ("NCI1", "Cora", "Computers", "Reddit"):
        for file, address in download.addresses(REGISTRY[name]).items():
            assert address.startswith("https://")
            assert address.endswith(file)


def test_without_pytorch_geometric_the_error_says_what_to_install(monkeypatch):
    def refuse(name, *args):
        raise ImportError(name)

    monkeypatch.setattr(download.importlib, "import_module", refuse)
    with pytest.raises(ImportError, match=r"pip install 'artlas\[pyg\]'"):
        download.addresses(REGISTRY["Cora"])
    assert download.addresses(REGISTRY["ogbn-arxiv"])


def test_only_absent_files_are_fetched(server, tiny):
    entry = REGISTRY["Cora"]
    folder = tiny / entry.folder
    folder.mkdir(parents=True)
    for name in entry.files[:-1]:
        (folder / name).write_text("here")
    give(server, "/planetoid/ind.cora.test.index", b"1\n")
    download.download_files(entry, tiny, lambda *args: None)
    assert server.asked == ["/planetoid/ind.cora.test.index"]
    assert (folder / "ind.cora.test.index").read_bytes() == b"1\n"
    assert (folder / "ind.cora.x").read_text() == "here"
