# Run inside the image as the agent, without network, on a read-only root: reads and writes one file of each kind.
set -eu
cd "$(mktemp -d)"
export HOME="$PWD" MPLCONFIGDIR="$PWD"
for program in soffice pdftotext tesseract pandoc sqlite3 gdalinfo tmux git jq zip unzip file; do command -v $program >/dev/null; done
python3 - <<'PY'
import bs4, duckdb, esda, geopandas, libpysal, lxml, mammoth, matplotlib, nbclient, pdfplumber, PIL, pyarrow, pymupdf
import nbformat, PyPDF2, requests, scipy, seaborn, sklearn, sqlite3, statsmodels.api, trimesh, xlrd, xlsxwriter
import docx, openpyxl, pandas, pptx
from shapely.geometry import Point

letter = docx.Document()
letter.add_paragraph("Dear client")
letter.save("a.docx")
deck = pptx.Presentation()
deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Title"
deck.save("a.pptx")
pandas.DataFrame({"x": [1, 2]}).to_parquet("a.parquet")
assert duckdb.execute("select sum(x) from 'a.parquet'").fetchone() == (3,)
pandas.DataFrame({"x": [7.5]}).to_excel("a.xlsx", index=False)
assert openpyxl.load_workbook("a.xlsx").active["A2"].value == 7.5
assert "Dear client" in mammoth.convert_to_markdown(open("a.docx", "rb")).value
seaborn.lineplot(x=[1, 2], y=[2, 1]).figure.savefig("plot.png")
assert PIL.Image.open("plot.png").width > 100
nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)")]), "a.ipynb")
geopandas.GeoDataFrame({"n": [1]}, geometry=[Point(1, 2)], crs="EPSG:4326").to_file("a.geojson")
PY
soffice --headless --convert-to pdf a.docx >/dev/null
pdftotext a.pdf - | grep -q 'Dear client'
python3 -c 'import pdfplumber; assert "Dear client" in pdfplumber.open("a.pdf").pages[0].extract_text()'
pdftoppm -r 150 -png -singlefile a.pdf a
tesseract a.png - 2>/dev/null | grep -q 'Dear client'
pandoc a.docx -t markdown | grep -q 'Dear client'
ogrinfo -q a.geojson | grep -q Point
jupyter nbconvert --execute --to html a.ipynb 2>/dev/null
grep -q 42 a.html
for font in DejaVu Liberation 'Noto Sans'; do fc-list | grep -q "$font"; done
git init -q x
jq -n 1 >/dev/null
tmux -V >/dev/null
echo "smoke passed"
