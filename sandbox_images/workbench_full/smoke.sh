# Run inside the image as the agent, without network, on a read-only root: reads and writes one file of each kind.
set -eu
cd "$(mktemp -d)"
export HOME="$PWD" MPLCONFIGDIR="$PWD"
python3 - <<'PY'
import bs4, duckdb, esda, geopandas, libpysal, lxml, mammoth, matplotlib, nbclient, pdfplumber, pyarrow, pymupdf
import requests, scipy, seaborn, sklearn, statsmodels.api, trimesh, xlrd
import docx, pandas, pptx
from shapely.geometry import Point

letter = docx.Document()
letter.add_paragraph("Dear client")
letter.save("a.docx")
deck = pptx.Presentation()
deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Title"
deck.save("a.pptx")
pandas.DataFrame({"x": [1, 2]}).to_parquet("a.parquet")
assert duckdb.sql("select sum(x) from 'a.parquet'").fetchone() == (3,)
geopandas.GeoDataFrame({"n": [1]}, geometry=[Point(1, 2)], crs="EPSG:4326").to_file("a.geojson")
PY
soffice --headless --convert-to pdf a.docx >/dev/null
pdftotext a.pdf - | grep -q 'Dear client'
python3 -c 'import pdfplumber; assert "Dear client" in pdfplumber.open("a.pdf").pages[0].extract_text()'
pdftoppm -r 150 -png -singlefile a.pdf a
tesseract a.png - 2>/dev/null | grep -q 'Dear client'
pandoc a.docx -t markdown | grep -q 'Dear client'
ogrinfo -q a.geojson | grep -q Point
git init -q x && jq -n 1 >/dev/null && tmux -V >/dev/null
echo "smoke passed"
