"""Speaks to the office program over its pipe: loads a document once, writes it in the formats that are asked for."""

import importlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from service.evidence.extraction.inside.office_profile import ANEW, started, write_profile

KEPT = 2
"""Documents that stay loaded: as many as readers ask at once."""
_STEP_S = 0.02
_LINE = 65536
_IN = {
    "xlsx": "Calc MS Excel 2007 XML", "ods": "calc8", "docx": "MS Word 2007 XML", "odt": "writer8",
    "rtf": "Rich Text Format", "pptx": "Impress MS PowerPoint 2007 XML", "odp": "impress8",
}  # fmt: skip
"""By kind: a file is loaded as what we took it for. Of the old binary formats there are several, which it tells apart."""
_OUT = {
    "xlsx": "Calc MS Excel 2007 XML", "recalculated": "Calc MS Excel 2007 XML", "docx": "MS Word 2007 XML",
    "pptx": "Impress MS PowerPoint 2007 XML",
}  # fmt: skip
_PDF = {
    "com.sun.star.sheet.SpreadsheetDocument": "calc_pdf_Export",
    "com.sun.star.text.TextDocument": "writer_pdf_Export",
    "com.sun.star.presentation.PresentationDocument": "impress_pdf_Export",
}
_PAGE = {"ScaleToPagesX": 1, "ScaleToPagesY": 0, "PrintHeaders": True, "PrintGrid": True}
_NEVER = 0
"""Macros are not executed; links are not updated."""
_HEADLESS_DPI = 150


def drive(asked: int, tell: int, profile: Path) -> None:
    """Start the office program, say ``up``, and answer each line of ``asked`` by one on ``tell``, until it ends."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    uno = importlib.import_module("uno")
    write_profile(profile)
    desk = _Desk(uno, _desktop(uno, profile))
    os.write(tell, b"up\n")
    with os.fdopen(asked, "rb") as questions:
        for line in iter(lambda: questions.readline(_LINE), b""):
            os.write(tell, json.dumps(desk.answer(json.loads(line))).encode() + b"\n")


def _desktop(uno: Any, profile: Path) -> Any:
    """Return the program's desktop once it is there; whoever waits for us has a clock."""
    pipe = f"ws{os.getpid()}"
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    office = started(profile, pipe)
    no_connect = uno.getClass("com.sun.star.connection.NoConnectException")
    while True:
        if office.poll() == ANEW:
            office = started(profile, pipe)
        try:
            context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
            return context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        except no_connect:
            try:
                if office.wait(_STEP_S) != ANEW:
                    raise
            except subprocess.TimeoutExpired:
                continue


class _Desk:
    """The documents that are loaded."""

    def __init__(self, uno: Any, desktop: Any) -> None:
        self._uno = uno
        self._desktop = desktop
        self._value = uno.getClass("com.sun.star.beans.PropertyValue")
        self._gone = uno.getClass("com.sun.star.lang.DisposedException")
        self._loaded: dict[str, Any] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        path, to = str(asked["path"]), str(asked["to"])
        try:
            document = self._document(path, str(asked["kind"]))
            if document is None:
                return {"error": "cannot_open", "detail": "the office program does not open it"}
            if to == "recalculated":
                document.calculateAll()
            self._store(document, to, str(asked["target"]), int(asked["pages"]))
            if to == "recalculated":  # whatever is asked for next is of the file as it came
                self._forget(path)
        except self._gone:
            raise
        except self._uno.getClass("com.sun.star.uno.Exception") as error:
            return {"error": "cannot_open", "detail": f"the office program: {type(error).__name__}"}
        return {"done": True}

    def _document(self, path: str, kind: str) -> Any:
        if path in self._loaded:
            return self._loaded[path]
        while len(self._loaded) >= KEPT:
            self._forget(next(iter(self._loaded)))
        how: dict[str, Any] = {"Hidden": True, "ReadOnly": True, "MacroExecutionMode": _NEVER, "UpdateDocMode": _NEVER}
        if kind in _IN:
            how["FilterName"] = _IN[kind]
        url = self._uno.systemPathToFileUrl(path)
        document = self._desktop.loadComponentFromURL(url, "_blank", 0, self._values(how))
        if document is not None:
            self._loaded[path] = document
        return document

    def _forget(self, path: str) -> None:
        self._loaded.pop(path).close(True)

    def _store(self, document: Any, to: str, target: str, pages: int) -> None:
        how: dict[str, Any] = {"Overwrite": True}
        if to == "pdf":
            self._fit(document)
            how["FilterName"] = next(name for service, name in _PDF.items() if document.supportsService(service))
            data = {
                "PageRange": f"1-{pages}",
                "ReduceImageResolution": True,
                "ExportNotes": False,
                "MaxImageResolution": _HEADLESS_DPI,
            }
            how["FilterData"] = self._uno.Any("[]com.sun.star.beans.PropertyValue", self._values(data))
        else:
            how["FilterName"] = _OUT[to]
        document.storeToURL(self._uno.systemPathToFileUrl(target), self._values(how))

    def _fit(self, document: Any) -> None:
        """Of a workbook, put all columns of a sheet on one page, with the names of rows and columns."""
        if document.supportsService("com.sun.star.sheet.SpreadsheetDocument"):
            for style in document.StyleFamilies.getByName("PageStyles"):
                for name, value in _PAGE.items():
                    style.setPropertyValue(name, value)

    def _values(self, named: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._value(name, 0, value, 0) for name, value in named.items())
