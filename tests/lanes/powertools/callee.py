"""A callee that is not ours: a Lambda function made idempotent by AWS Lambda Powertools on Redis, and what invokes it.

usage: callee.py REDIS_PORT PORT_FILE

Listens on a loopback port of the system's choice and writes it to PORT_FILE. A POST anywhere but below /control is an
event of API Gateway's Lambda proxy integration, and an invocation; its answer is the function's, or, as with Lambda's
own Invoke, has the header x-amz-function-error where the function threw. An order that says `late` is committed, and
then its first execution waits until it is told to finish:

  GET  /control/committed/ORDER   answers when the order was committed at least once
  POST /control/finish/ORDER      lets it go, and answers when no invocation for it is running any more
"""

import base64
import json
import os
import sys
import threading
import time
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

REDIS_PORT, PORT_FILE = int(sys.argv[1]), sys.argv[2]
# The function's own limit, which is when a record in progress expires; and how long a control waits.
LIMIT_SECONDS = 120
PATIENCE_SECONDS = 60

database = redis.Redis(host="127.0.0.1", port=REDIS_PORT, decode_responses=True)
changed = threading.Condition()
committed, running, released = Counter(), Counter(), set()


# The function.

config = IdempotencyConfig(
    event_key_jmespath='headers."x-idempotency-key"',
    raise_on_no_idempotency_key=True,
    expires_after_seconds=3600,
)


@idempotent(config=config, persistence_store=CachePersistenceLayer(client=database))
def place(event, context):
    """Commits, and may then take its time."""
    order = json.loads(event["body"])
    number = commit(order["id"], event["headers"].get("x-idempotency-key", "none"))
    if order.get("late") and number == 1:
        with changed:
            changed.wait_for(lambda: order["id"] in released, LIMIT_SECONDS)
    return answer(201, {"id": order["id"], "confirmation": str(uuid.uuid4())})


def place_and_tell(event, context):
    """The same by a team that returns what Powertools throws while the first run is at work."""
    try:
        return place(event, context)
    except IdempotencyAlreadyInProgressError:
        return answer(409, {"code": "IDEMPOTENCY_IN_PROGRESS", "message": "The first request is still at work."})


def commit(order, key):
    """Writes a line that stays, under whatever key; both writes are one transaction. Answers how many there are."""
    lines, count = database.pipeline().rpush(f"commits:{order}", key).incr(f"count:{order}").execute()
    if lines != count:
        raise RuntimeError("the database lost a commit")
    with changed:
        committed[order] += 1
        changed.notify_all()
    return lines


def answer(status, body):
    return {"statusCode": status, "headers": {"Content-Type": "application/json"}, "body": json.dumps(body)}


# What invokes it.


class Context:
    """What Lambda hands to a function, as far as it is looked at."""

    function_name = "orders"
    memory_limit_in_mb = 128
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:orders"

    def __init__(self):
        self.aws_request_id = str(uuid.uuid4())
        self._deadline = time.monotonic() + LIMIT_SECONDS

    def get_remaining_time_in_millis(self):
        return max(0, int((self._deadline - time.monotonic()) * 1000))


class Invoker(BaseHTTPRequestHandler):
    def do_GET(self):
        verb, order = self.control()
        if verb == "committed":
            self.when(lambda: committed[order] > 0)
        else:
            self.write(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        verb, order = self.control()
        if verb == "finish":
            with changed:
                released.add(order)
                changed.notify_all()
            self.when(lambda: running[order] == 0)
        else:
            self.invoke(body)

    def control(self):
        parts = self.path.split("/")
        return (parts[2], parts[3]) if len(parts) == 4 and parts[1] == "control" else (None, None)

    def when(self, holds):
        with changed:
            held = changed.wait_for(holds, PATIENCE_SECONDS)
        self.write(204 if held else 504)

    def invoke(self, body):
        order = json.loads(body)["id"]
        function = place_and_tell if "/telling/" in self.path else place
        with changed:
            running[order] += 1
        try:
            returned, error = function(self.event(body), Context()), None
        except Exception as thrown:  # as Lambda does
            returned, error = None, {"errorType": type(thrown).__name__, "errorMessage": str(thrown)}
        finally:
            with changed:
                running[order] -= 1
                changed.notify_all()
        if error is None:
            self.write(returned["statusCode"], returned["headers"], returned["body"])
        else:
            self.write(200, {"X-Amz-Function-Error": "Unhandled"}, json.dumps(error))

    def event(self, body):
        """Names of headers stay as they came; of a header that came twice the last value stands."""
        lines = self.headers.items()
        names = {name for name, _ in lines}
        try:
            text, encoded = body.decode(), False
        except UnicodeDecodeError:
            text, encoded = base64.b64encode(body).decode(), True
        return {
            "resource": self.path,
            "path": self.path,
            "httpMethod": self.command,
            "headers": dict(lines),
            "multiValueHeaders": {name: self.headers.get_all(name) for name in names},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "pathParameters": None,
            "stageVariables": None,
            "requestContext": {"requestId": str(uuid.uuid4()), "stage": "prod", "httpMethod": self.command},
            "body": text,
            "isBase64Encoded": encoded,
        }

    def write(self, status, headers=None, body=""):
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())
        except (BrokenPipeError, ConnectionResetError):
            # Nobody waits any more.
            self.close_connection = True

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Invoker)
with open(PORT_FILE + ".new", "w") as file:
    file.write(str(server.server_port))
os.replace(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
