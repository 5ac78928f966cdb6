# A web service that imports what such services do.
import asyncio, concurrent.futures, decimal, email.message, http.client, http.server, json, logging.config
import multiprocessing, sqlite3, ssl, unittest.mock, urllib.request, uuid, xml.dom.minidom, xmlrpc.client, zipfile


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("%s:%d" % server.server_address, flush=True)
server.serve_forever()
