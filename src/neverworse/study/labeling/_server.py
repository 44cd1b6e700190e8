"""A page to label rows on, at an address of this computer that nobody else can reach or guess."""

from __future__ import annotations

import errno
import json
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from neverworse.pages import render
from neverworse.study.labeling import Labeling
from neverworse.study.labeling._shown import NOT_WORSE, WORSE, picture_of
from neverworse.tables import TableError

LOOPBACK = "127.0.0.1"
ROOM = "neverworse.study.labeling"
KEYS = "1234567890abcdefghijklmnopqrtvwxyz"  # without s and u, which skip and undo
LONGEST = 10_000  # bytes of a request
MOODS = {NOT_WORSE: "good", WORSE: "bad"}
HEADERS = {
    "Cache-Control": "no-store",
    # The page has a policy for all else; this one works in a header only.
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class LabelingPage:
    """The page, and what its buttons do.

    Requests are answered one after another, so that windows do not get in each other's way. The
    token is the part of the address that nobody can guess. Suggested rows, those that help training
    most, are asked for when everything is decided.
    """

    def __init__(self, labeling: Labeling, suggested: Sequence[int], token: str, port: int) -> None:
        self._labeling, self._suggested, self._token = labeling, suggested, token
        self._hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/{token}/", self._page, methods=["GET"]),
                Route("/{token}/{action}", self._act, methods=["POST"]),
            ]
        )

    def _refusal(self, request: Request) -> Response | None:
        """Return an answer to those who are not the page itself; another site may be one."""
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse("Wrong host.", 421, HEADERS)
        if not secrets.compare_digest(request.path_params["token"].encode(), self._token.encode()):
            return PlainTextResponse("Nothing here.", 404, HEADERS)
        if request.method == "POST" and request.headers.get("origin") not in self._origins:
            return PlainTextResponse("Wrong origin.", 403, HEADERS)
        return None

    async def _page(self, request: Request) -> Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        work = self._work()
        self._labeling.save()
        page = render(ROOM, "label.html", folder=str(self._labeling.folder), **work)
        return HTMLResponse(page, headers=HEADERS)

    async def _act(self, request: Request) -> Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        actions: dict[str, Callable[[int, Any], str]] = {
            "answer": self._answer,
            "skip": self._skip,
            "undo": self._undo,
        }
        try:
            if int(request.headers.get("content-length", LONGEST + 1)) > LONGEST:
                raise ValueError
            content = json.loads(await request.body())
            act, row, code = actions[request.path_params["action"]], content["row"], content["code"]
            if type(row) is not int or (code is not None and type(code) is not int):
                raise TypeError
        except (KeyError, TypeError, ValueError, RecursionError):
            return PlainTextResponse("Not understood.", 400, HEADERS)
        status = 200
        try:
            said = act(row, code)
        except TableError as error:  # another window was faster
            said, status = f"{error.problem} Nothing was changed.", 409
        except OSError as error:
            said, status = f"Not stored: {error.strerror}. Try again.", 507
        work = render(ROOM, "work.html", **self._work())
        return JSONResponse({"work": work, "said": said}, status, HEADERS)

    def _answer(self, row: int, code: Any) -> str:
        labeling, names = self._labeling, self._labeling.target.class_names
        if code is None or not 0 <= code < len(names):
            raise TableError("There is no such class.")
        before = labeling.standing()
        is_new = labeling.record({row: names[code]})
        try:
            labeling.current(self._suggested)  # rows that are drawn now are stored as well
            labeling.save()
        except OSError:
            if is_new:
                labeling.withdraw([row])
            raise
        now = labeling.standing()
        news = f" {now.decision}" if now.verdict != before.verdict else ""
        return f"Row {row}: {names[code]}.{news}"

    def _skip(self, row: int, _: Any) -> str:
        self._labeling.skip(row)
        return f"Row {row} skipped. It will be asked again."

    def _undo(self, row: int, _: Any) -> str:
        if row != next(reversed(self._labeling.answers), None):
            raise TableError(f"Row {row} is not the last that has an answer.")
        self._labeling.withdraw([row])
        self._labeling.save()
        return f"Row {row} has no answer now."

    def _work(self) -> dict[str, Any]:
        """Return what the page shows: a row, and what is decided."""
        labeling = self._labeling
        question = labeling.current(self._suggested)
        standing = labeling.standing()
        cells = {} if question is None else labeling.cells([question.row])
        last = next(reversed(labeling.answers), None)
        names = labeling.target.class_names
        keys = [*KEYS, *[""] * len(names)]
        return {
            "target": labeling.settings.target,
            "question": question,
            "cells": [(name, texts[0]) for name, texts in cells.items()],
            "classes": list(zip(names, keys, strict=False)),
            "last": last,
            "last_class": None if last is None else names[labeling.answers[last]],
            "standing": standing,
            "mood": MOODS.get(standing.verdict),
            "picture": picture_of(labeling.history, standing),
        }


def listening(port: int = 0) -> socket.socket:
    """Return a socket at which this computer, and no other, can reach us; port 0 is a free one.

    `ValueError`, with a message for people, if the port is taken.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # On Windows, the option of that name lets two programs have the same port.
    option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
    made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind((LOOPBACK, port))
    except OSError as error:
        made.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "in use" if error.errno == errno.EADDRINUSE else "not permitted"
        raise ValueError(
            f"Port {port} is {why}. Choose another with --port N, or leave it out."
        ) from None
    made.listen()
    return made


def serve(
    labeling: Labeling, suggested: Sequence[int], at: socket.socket, ready: Callable[[str], None]
) -> None:
    """Serve the page at a socket of `listening` until a signal; `ready` gets the address."""
    token, port = secrets.token_urlsafe(24), at.getsockname()[1]
    page = LabelingPage(labeling, suggested, token, port)
    config = uvicorn.Config(
        page.application(),
        access_log=False,
        http="h11",
        lifespan="off",
        log_level="error",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    ready(f"http://{LOOPBACK}:{port}/{token}/")
    uvicorn.Server(config).run(sockets=[at])
