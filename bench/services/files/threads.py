"""A threaded server of small answers; /export compresses data in a child process."""
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DATA = " ".join(str(i * 7919 % 100003) for i in range(250_000)).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet

    def do_GET(self):
        if self.path == "/export":
            subprocess.run(["gzip", "-9"], input=DATA, stdout=subprocess.DEVNULL, check=True)
        body = b"hello\n" * 20
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
