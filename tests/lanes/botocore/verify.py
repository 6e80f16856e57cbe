"""Signs recorded requests once more with botocore, and demands the very Authorization value that arrived.

What is judged are the raw bytes that came over the wire. botocore, and Python itself, do all that is judged by:
nothing here shares code, author or language with the client.
"""

import copy
import datetime
import json
import re
import sys
from unittest import mock
from urllib.parse import unquote_to_bytes

import botocore
import botocore.auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[^/, ]+/\d{8}/[^/, ]+/[^/, ]+/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}"
)
# botocore writes these itself.
BOTOCORES_OWN = {"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}
# Present or not: the rule of "Create a signed AWS API request", IAM User Guide.
ALWAYS_SIGNED = {"host", "content-type", "x-apigw-api-id"}


class Mismatch(Exception):
    """The signature, or something that it should cover, is not as it should be."""


class Recorded:
    """One request as it arrived, and the credentials that its sender had."""

    def __init__(self, line):
        self.number = line["number"]
        self.service = line["service"]
        self.region = line["region"]
        self.at = datetime.datetime.fromtimestamp(line["at"], datetime.timezone.utc)
        self.credentials = Credentials(
            line["access_key_id"], line["secret_access_key"], line["session_token"]
        )
        self.method = line["method"]
        self.target = line["target"]
        self.header_lines = line["headers"]
        self.body = line["body"].encode("latin-1")
        self.seen_canonical = line["canonical_request"]
        self.meant = line["meant"]

    def headers(self):
        """The header lines as pairs of lower-case name and value, in order."""
        for line in self.header_lines:
            name, _, value = line.encode("latin-1").decode("utf-8").partition(":")
            yield name.lower(), value.strip(" \t")

    def header(self, name):
        """The one value of a header; none if it is absent."""
        values = [value for found, value in self.headers() if found == name]
        if len(values) > 1:
            raise Mismatch(f"{name} arrived {len(values)} times")
        return values[0] if values else None

    def signed_headers(self):
        """The names that the signature covers, by its own word."""
        match = AUTHORIZATION.fullmatch(self.header("authorization") or "")
        if not match:
            raise Mismatch("there is no Authorization header of the right form")
        return set(match.group(1).split(";"))


def bare_request(recorded, names):
    """The request for botocore to sign: raw method, path, query and body, and the headers of these names alone."""
    # https, for over plain http botocore signs every payload, whatever the service.
    url = f"https://{recorded.header('host')}{recorded.target}"
    request = AWSRequest(method=recorded.method, url=url, data=recorded.body)
    for name, value in recorded.headers():
        if name in names:
            request.headers[name] = value
    return request


def recompute(recorded):
    """Rebuilds the signature step by step; answers the Authorization value and the canonical request."""
    signer = SigV4Auth(recorded.credentials, recorded.service, recorded.region)
    request = bare_request(recorded, recorded.signed_headers())
    request.context["timestamp"] = recorded.header("x-amz-date")
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    names = signer.signed_headers(signer.headers_to_sign(request))
    value = f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names}, Signature={signature}"
    return value, canonical


def sign_anew(recorded):
    """Signs as botocore's own clients do, at the time that the sender's clock showed; answers what botocore writes."""
    signer = SigV4Auth(recorded.credentials, recorded.service, recorded.region)
    request = bare_request(recorded, recorded.signed_headers() - BOTOCORES_OWN)
    # What the models of services without payload signing say (botocore, "unsignedPayload").
    request.context["payload_signing_enabled"] = recorded.service != "vpc-lattice-svcs"
    with mock.patch.object(botocore.auth, "get_current_datetime", lambda: recorded.at):
        signer.add_auth(request)
    return {name: request.headers.get(name) for name in BOTOCORES_OWN}


def judge(recorded):
    """Raises Mismatch unless botocore comes to what arrived, and the signature covers what it must."""
    value, canonical = recompute(recorded)
    if value != recorded.header("authorization"):
        raise Mismatch(differing(recorded, canonical))
    for name, written in sign_anew(recorded).items():
        if written != recorded.header(name):
            raise Mismatch(f"botocore writes another {name}")
    names = [name for name, _ in recorded.headers()]
    # What comes twice may reach the gateway as one line, and no signature covers both.
    single = {name for name in names if names.count(name) == 1}
    must = {name for name in single if name.startswith("x-amz-") or name in ALWAYS_SIGNED}
    must.add(recorded.meant["idempotency_header"])
    unsigned = (must & single) - recorded.signed_headers()
    if unsigned:
        raise Mismatch(f"not signed: {', '.join(sorted(unsigned))}")
    check_meaning(recorded)


def check_meaning(recorded):
    """Raises Mismatch unless method, segments and query that arrived are those that the caller gave."""
    meant = recorded.meant
    path, _, query = recorded.target.partition("?")
    pairs = [tuple(pair.partition("=")[::2]) for pair in query.split("&")] if query else []
    pairs = [[unquote_to_bytes(part).decode("utf-8") for part in pair] for pair in pairs]
    segments = [unquote_to_bytes(segment).decode("utf-8", "replace") for segment in path.split("/")]
    count = len(meant["segments"])
    if recorded.method != meant["method"]:
        raise Mismatch("another method arrived")
    if pairs != meant["query"]:
        raise Mismatch("another query arrived")
    if count and segments[-count:] != meant["segments"]:
        raise Mismatch("other segments arrived")


def differing(recorded, canonical):
    """Both canonical requests, without the token."""
    text = (
        f"botocore comes to another signature\n\nbotocore's canonical request:\n{canonical}\n\n"
        f"the canonical request that the embedded gateway saw:\n{recorded.seen_canonical}"
    )
    token = recorded.credentials.token
    return text.replace(token, "(token)") if token else text


def flipped(text, at):
    """The text with the lowest bit of one character flipped."""
    return text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]


def forgeries(recorded):
    """The same request with one byte changed, once in every place that the signature covers."""

    def forged(place, **changes):
        forgery = copy.copy(recorded)
        vars(forgery).update(changes)
        return place, forgery

    if recorded.target != "/":
        yield forged("target", target=flipped(recorded.target, 1))
    yield forged("method", method=flipped(recorded.method, 0))
    for at, line in enumerate(recorded.header_lines):
        name = line.partition(":")[0].lower()
        if name in recorded.signed_headers() | {"authorization"} and line[-1] not in " \t":
            lines = list(recorded.header_lines)
            lines[at] = flipped(line, len(line) - 1)
            yield forged(name, header_lines=lines)
    if recorded.body:
        body = bytes([recorded.body[0] ^ 1]) + recorded.body[1:]
        yield forged("body", body=body)


def stands(recorded):
    """Whether botocore comes to the signature that arrived; meaning and coverage aside."""
    try:
        return recompute(recorded)[0] == recorded.header("authorization")
    except Mismatch:
        return False


def check_the_judge(requests):
    """Demands that one flipped byte, wherever it is, makes a mismatch; answers how many were tried."""
    tried = {}
    for recorded in requests:
        unsigned_payload = recorded.header("x-amz-content-sha256") == "UNSIGNED-PAYLOAD"
        for place, forgery in forgeries(recorded):
            # A payload that is not signed may change: that this is so is a proof as well.
            if stands(forgery) != (place == "body" and unsigned_payload):
                raise Mismatch(f"the judge is blind: request {recorded.number}, a byte of its {place} flipped")
            tried[place] = tried.get(place, 0) + 1
    for place in ("target", "method", "body", "host", "content-type", *BOTOCORES_OWN):
        if not tried.get(place):
            raise Mismatch(f"the judge was never tried with another {place}")
    return sum(tried.values())


def main(file):
    with open(file, encoding="utf-8") as lines:
        requests = [Recorded(json.loads(line)) for line in lines]
    if len(requests) < 500:
        sys.exit(f"only {len(requests)} requests were recorded")
    matched = {}
    for recorded in requests:
        try:
            judge(recorded)
        except Mismatch as mismatch:
            done = sum(matched.values())
            sys.exit(f"request {recorded.number} for {recorded.service}, after {done} that match: {mismatch}")
        matched[recorded.service] = matched.get(recorded.service, 0) + 1
    try:
        flips = check_the_judge(requests)
    except Mismatch as mismatch:
        sys.exit(str(mismatch))
    shares = ", ".join(f"{count} for {service}" for service, count in matched.items())
    print(f"botocore {botocore.__version__} came to the same signature for {len(requests)} of {len(requests)}: {shares}")
    print(f"and to another one for each of {flips} with a byte flipped that was signed")


if __name__ == "__main__":
    main(sys.argv[1])
