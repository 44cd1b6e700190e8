"""A page to label rows on, at an address of this computer that nobody else can reach or guess."""

from __future__ import annotations

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


class LabelingPage(Starlette):  # type: ignore[misc]
    """The page, and what its buttons do.

    Requests are answered one after another, so that windows do not get in each other's way. The
    token is the part of the address that nobody can guess. Suggested rows, whose labels help
    training most, are asked when everything is decided.
    """

    def __init__(self, labeling: Labeling, suggested: Sequence[int], token: str, port: int) -> None:
        self._labeling, self._suggested, self._token = labeling, suggested, token
        self._hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        acting = Route("/{token}/{action}", self._respond, methods=["POST"])
        super().__init__(routes=[Route("/{token}/", self._respond), acting])

    async def _respond(self, request: Request) -> Response:
        """Answer the page itself, and nobody else, such as another site in the same browser."""
        host, origin = request.headers.get("host"), request.headers.get("origin", "")
        token, is_post = request.path_params["token"], request.method == "POST"
        if host not in self._hosts:
            return PlainTextResponse("Wrong host.", 421, HEADERS)
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("Nothing here.", 404, HEADERS)
        if is_post and origin not in {f"http://{each}" for each in self._hosts}:
            return PlainTextResponse("Wrong origin.", 403, HEADERS)
        if is_post:
            return await self._act(request)
        work = self._work()
        self._labeling.save()
        page = render(ROOM, "label.html", folder=str(self._labeling.folder), **work)
        return HTMLResponse(page, headers=HEADERS)

    async def _act(self, request: Request) -> Response:
        actions = {"answer": self._answer, "skip": self._skip, "undo": self._undo}
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
            message = act(row, code)
        except TableError as error:  # another window was faster
            message, status = f"{error.problem} Nothing was changed.", 409
        except OSError as error:
            message, status = f"Not stored: {error.strerror}. Try again.", 507
        work = render(ROOM, "work.html", **self._work())
        return JSONResponse({"work": work, "message": message}, status, HEADERS)

    def _answer(self, row: int, code: int | None) -> str:
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

    def _skip(self, row: int, _: int | None) -> str:
        self._labeling.skip(row)
        return f"Row {row} skipped. It will be asked again."

    def _undo(self, row: int, _: int | None) -> str:
        if row != next(reversed(self._labeling.answers), None):
            raise TableError(f"Row {row} is not the last that has an answer.")
        self._labeling.withdraw([row])
        self._labeling.save()
        return f"Row {row} has no answer now."

    def _work(self) -> dict[str, Any]:
        """Return what the page shows: a row, and what is decided."""
        labeling, names = self._labeling, self._labeling.target.class_names
        row, standing = labeling.current(self._suggested), labeling.standing()
        cells = {} if row is None else labeling.cells([row])
        last = next(reversed(labeling.answers), None)
        keys = [*KEYS, *[""] * len(names)]
        return {
            "target": labeling.settings.target,
            "row": row,
            "cells": [(name, texts[0]) for name, texts in cells.items()],
            "classes": list(zip(names, keys, strict=False)),
            "last": last,
            "last_class": None if last is None else names[labeling.answers[last]],
            "standing": standing,
            "mood": MOODS.get(standing.verdict),
            "picture": picture_of(labeling.history, standing),
        }


def listening(port: int = 0) -> socket.socket:
    """Return a socket that only this computer can reach; port 0 is a free one."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        problem = str(error.strerror).partition(" (while")[0]
        raise ValueError(
            f"Port {port}: {problem}. Choose another with --port N, or leave it out."
        ) from None


def serve(
    labeling: Labeling, suggested: Sequence[int], at: socket.socket, ready: Callable[[str], None]
) -> None:
    """Serve the page at a socket until a signal; `ready` is called with its address."""
    token, port = secrets.token_urlsafe(24), at.getsockname()[1]
    config = uvicorn.Config(
        LabelingPage(labeling, suggested, token, port),
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
