"""Client threads share one connection and hold its lock from the request to the reply."""

import json
import os
import socket
import socketserver
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a connection for every thread
SCALE = float(os.environ.get("CASE_SCALE", "1"))
CLIENTS, REQUESTS = 6, 12


class Backend(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(64):
            time.sleep(0.011 * SCALE)
            self.request.sendall(data)


class Client:
    def __init__(self, address):
        self._connection = socket.create_connection(address)
        self._exchange = threading.Lock()  # LOCK

    def call(self, payload):
        with self._exchange:  # VICTIM
            self._connection.sendall(payload)
            return self._connection.recv(64)  # CULPRIT

    def close(self):
        self._connection.close()


def session(client, answers):
    for number in range(REQUESTS):
        answers.append(client.call(b"%d" % number))


def main():
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Backend)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    shared = Client(server.server_address)
    clients = [Client(server.server_address) if FIX else shared for _ in range(CLIENTS)]
    answers = []
    threads = [threading.Thread(target=session, args=(one, answers)) for one in clients]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    for client in {*clients, shared}:
        client.close()
    server.shutdown()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "answers": len(answers)}))


if __name__ == "__main__":
    main()
