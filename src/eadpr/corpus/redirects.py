"""Redirects that a download may follow."""

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urljoin, urlsplit

import requests

from eadpr.corpus.sources import without_password

NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address


def check_redirect(response: requests.Response, *_: object, **__: object) -> None:
    """Refuse a redirect before it is followed; a hook of requests.

    Raises HTTPError for one that leads to what is not the web, from https to http, or from a public host into a private
    network.
    """
    if not response.is_redirect:
        return
    location = response.headers["Location"]
    try:
        address = urljoin(response.url, location)
        start, target = urlsplit(response.url), urlsplit(address)
        host = target.hostname
    except ValueError as error:
        raise requests.HTTPError(f"it leads to {location[:200]!r}, which is no address ({error})") from error
    reason = None
    if target.scheme not in ("http", "https"):
        reason = "neither http nor https"
    elif start.scheme == "https" and target.scheme == "http":
        reason = "not https"
    elif is_private(host) and not is_private(start.hostname):
        reason = "of a private network"
    if reason:
        raise requests.HTTPError(f"it leads to {without_password(address)}, which is {reason}")


def is_private(host: str | None) -> bool:
    """Return whether the public internet does not reach one of the host's addresses."""
    try:
        addresses = {ip_address(info[4][0].partition("%")[0]) for info in socket.getaddrinfo(host, None)}
    except OSError:  # an unknown host: the request will say so
        return False
    return not all(_carried(address).is_global for address in addresses)


def _carried(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address (mapped, 6to4, NAT64), or the address itself."""
    if address.version == 4:
        return address
    nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None
    return address.ipv4_mapped or address.sixtofour or nat64 or address
