"""An API that answers at once and leaves exports to a worker of RQ, which forks for each."""
import os
import zlib

from redis import Redis
from rq import Queue

DATA = " ".join(str(i * 7919 % 100003) for i in range(100_000)).encode()


def export():
    return len(zlib.compress(DATA, 9))


queue = Queue("exports", connection=Redis(port=int(os.environ["REDIS_PORT"])))


def application(environ, start_response):
    if environ["PATH_INFO"] == "/export":
        queue.enqueue(export, result_ttl=0)
    body = b"hello\n" * 20
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
