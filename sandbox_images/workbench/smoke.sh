# Run inside the image as the agent, without network, on a read-only root: writes and reads one file of each kind.
set -eu
cd "$(mktemp -d)"
python3 - <<'PY'
import csv, sqlite3, subprocess

import docx
import openpyxl
import PyPDF2
from PIL import Image, ImageDraw

book = openpyxl.Workbook()
book.active.append(["hours", 7.5])
book.save("a.xlsx")
assert openpyxl.load_workbook("a.xlsx").active["B1"].value == 7.5

letter = docx.Document()
letter.add_paragraph("Dear client")
letter.save("a.docx")
assert docx.Document("a.docx").paragraphs[0].text == "Dear client"

picture = Image.new("RGB", (64, 32), "white")
ImageDraw.Draw(picture).line((0, 0, 63, 31), fill="red")
picture.save("a.png")
picture.save("a.pdf")
assert Image.open("a.png").size == (64, 32)
assert len(PyPDF2.PdfReader("a.pdf").pages) == 1
assert b"Pages:" in subprocess.run(["pdfinfo", "a.pdf"], capture_output=True, check=True).stdout

with sqlite3.connect("a.sqlite") as base:
    base.execute("create table t(x)")
    base.execute("insert into t values (42)")
base.close()
assert subprocess.run(["sqlite3", "a.sqlite", "select x from t"], capture_output=True, check=True).stdout == b"42\n"

with open("a.csv", "w", newline="") as file:
    csv.writer(file).writerow(["a", "b,c"])
assert next(csv.reader(open("a.csv"))) == ["a", "b,c"]
print("smoke passed")
PY
