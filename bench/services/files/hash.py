"""A WSGI application that hashes a password for each request."""
import hashlib
import os

ITERATIONS = int(os.environ["HASH_ITERATIONS"])


def application(environ, start_response):
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", ITERATIONS)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "8")])
    return [b"welcome\n"]
