"""A server that speaks Ollama's protocol."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class OllamaServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), OllamaHandler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answers = []
        self.asked = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def __exit__(self, *args):
        self.shutdown()
        super().__exit__(*args)


class OllamaHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked)
        status, body = self.server.answers.pop(0) if self.server.answers else (200, None)
        body = body or {
            "model": asked["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": f"heard {asked['messages'][-1]['content']}"},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 11,
            "eval_count": 4,
        }
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        """Say nothing."""


def ollama_config(server):
    return {"config_list": [{"api_type": "ollama", "model": "m", "client_host": server.url, "price": [0, 0]}]}
