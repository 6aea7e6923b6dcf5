"""Redirects of downloads that would reach further than they may."""

from contextlib import nullcontext

import pytest
import requests

from eadpr.corpus import download
from eadpr.corpus.redirects import check_redirect
from tests.loopback import serving

pytestmark = pytest.mark.formats


@pytest.mark.parametrize(("address", "message"), [
    ("file:///etc/hostname", "it leads to file:///etc/hostname, which is neither http nor https"),
    ("ftp://ann:secret@host/x", "it leads to ftp://host/x, which is neither http nor https"),
    ("http://[::1", r"it leads to 'http://\[::1', which is no address"),
])  # fmt: skip
def test_a_redirect_leads_to_nothing_but_the_web(tmp_path, address, message):
    def answer(to):
        to.send_response(302)
        to.send_header("Location", address)
        to.end_headers()

    with serving(do_GET=answer) as http, pytest.raises(OSError, match=message) as refused:
        download.download(f"http://127.0.0.1:{http.server_port}/x", download.Pin(None, None), local_hint="")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("start", "location", "refused"), [
    ("http://93.184.216.34/x", "http://127.0.0.1/x", True),
    ("http://93.184.216.34/x", "//169.254.169.254/latest", True),
    ("http://93.184.216.34/x", "http://10.0.0.7:8080/x", True),
    ("http://93.184.216.34/x", "http://[::1]/x", True),
    ("http://93.184.216.34/x", "http://[::ffff:10.0.0.7]/x", True),
    ("http://93.184.216.34/x", "http://[2002:a00:7::1]/x", True),
    ("http://93.184.216.34/x", "http://[64:ff9b::a00:7]/x", True),
    ("http://93.184.216.34/x", "http://[64:ff9b::5db8:d822]/x", False),
    ("https://93.184.216.34/x", "http://93.184.216.34/x", True),
    ("http://93.184.216.34/x", "https://93.184.216.35/y", False),
    ("http://93.184.216.34/x", "/y", False),
    ("http://10.0.0.7/x", "http://10.0.0.8/y", False),
])  # fmt: skip
def test_a_public_server_leads_nobody_into_their_own_network(start, location, refused):
    answer = requests.Response()
    answer.status_code, answer.url, answer.headers["Location"] = 302, start, location
    with pytest.raises(requests.HTTPError, match="it leads to ") if refused else nullcontext():
        check_redirect(answer)
