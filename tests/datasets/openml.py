"""A web server on this machine that answers as OpenML does."""

import hashlib
import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class OpenML:
    def __init__(self):
        self.pages = {}
        self.asked = []

    def __enter__(self):
        library = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                library.asked.append(self.path)
                body = library.pages.get(self.path.rstrip("/"))
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def urlopen(self, request, *args, **kwargs):
        """Ask this server for what OpenML was to be asked for."""
        host, port = self.server.server_address
        path = urlsplit(request.full_url).path
        try:
            return urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10)
        except urllib.error.HTTPError as error:
            error.close()  # scikit-learn leaves it to the garbage collector, which warns
            raise

    def offer(self, number, columns, rows, target):
        """Offer a data set.

        columns: a dict from names to None for numbers, or to the list of categories.
        rows: lists of cells, as text. target: the name of a column, or None.
        """
        kinds = {
            name: "NUMERIC" if levels is None else "{" + ",".join(levels) + "}"
            for name, levels in columns.items()
        }
        lines = ["@RELATION data", *(f"@ATTRIBUTE {name} {kinds[name]}" for name in columns)]
        arff = "\n".join([*lines, "@DATA", *map(",".join, rows)]).encode() + b"\n"
        path = f"/data/v1/download/{number}/data.arff"
        description = {
            "id": str(number),
            "name": "data",
            "version": "1",
            "description": "Some data.",
            "format": "ARFF",
            "status": "active",
            "file_id": str(number),
            "url": f"https://api.openml.org{path}",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
        if target is not None:
            description["default_target_attribute"] = target
        features = [
            {
                "index": str(index),
                "name": name,
                "data_type": "numeric" if levels is None else "nominal",
                "is_target": str(name == target).lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": str(sum(row[index] == "?" for row in rows)),
            }
            for index, (name, levels) in enumerate(columns.items())
        ]
        qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
        api = "/api/v1/json/data"
        answers = {
            f"{api}/{number}": {"data_set_description": description},
            f"{api}/features/{number}": {"data_features": {"feature": features}},
            f"{api}/qualities/{number}": {"data_qualities": {"quality": qualities}},
        }
        self.pages |= {path: json.dumps(answer).encode() for path, answer in answers.items()}
        # scikit-learn 1.6 asks by the number of the file, later ones by its address.
        self.pages |= dict.fromkeys([path, path.rpartition("/")[0]], arff)
