"""A threading HTTP server that is asked a handful of times in a second."""

import http.client
import http.server
import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"hello " * 20
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        for _ in range(6):
            time.sleep(0.12 * SCALE)
            connection = http.client.HTTPConnection(*server.server_address)
            connection.request("GET", "/")
            connection.getresponse().read()
            connection.close()
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
