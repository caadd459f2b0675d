"""A small HTTP server for examples/41_depot_http.c: GET and PUT of /users/ID, with ETag, If-None-Match, If-Match and
Cache-Control. It prints its port, then a line for each request, and ends with its parent (stdin is closed)."""
import http.server
import sys
import threading

users = {"1": ["Ada", 1]}
seen = set()


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", etag=None):
        # Before the answer: with it the client may go on, and the next request has another thread.
        print(self.command, self.path, status, flush=True)
        self.send_response(status)
        if etag is not None:
            self.send_header("ETag", '"%d"' % etag)
            self.send_header("Cache-Control", "max-age=60")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def user(self):
        return users.get(self.path.rpartition("/")[2])

    def do_GET(self):
        user = self.user()
        if user is None:
            self.answer(404)
        elif self.headers.get("If-None-Match") == '"%d"' % user[1]:
            self.answer(304, etag=user[1])
        else:
            self.answer(200, user[0].encode(), user[1])

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        user = self.user()
        wanted = self.headers.get("If-Match")
        if user is None:
            self.answer(404)
        elif self.headers["Idempotency-Key"] in seen:
            self.answer(200, etag=user[1])
        elif wanted is not None and wanted != '"%d"' % user[1]:
            self.answer(412, user[0].encode(), user[1])
        else:
            seen.add(self.headers["Idempotency-Key"])
            user[0] = body.decode()
            user[1] += 1
            self.answer(200, etag=user[1])

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
