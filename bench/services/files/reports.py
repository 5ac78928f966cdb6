"""FastAPI: /hello is answered on the event loop; /report hashes on its pool of threads."""
import hashlib

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()


@app.get("/hello", response_class=PlainTextResponse)
async def hello():
    return "hello\n" * 20


@app.get("/report", response_class=PlainTextResponse)
def report():
    return hashlib.pbkdf2_hmac("sha256", b"report", b"salt", 30_000).hex()
