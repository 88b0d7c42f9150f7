# Run inside the image as the agent, without network, on a read-only root: each tool opens one file that it made.
set -eu
cd "$(mktemp -d)"
media() { LD_LIBRARY_PATH=/opt/media/lib "/opt/media/bin/$@"; }

python3 -c 'from PIL import Image; p = Image.new("RGB", (64, 32), "white"); p.save("a.png"); p.save("a.pdf")'
pdfinfo a.pdf | grep -q '^Pages: *1$'

7zz a -bd a.7z a.png >/dev/null
7zz l -slt -bd -p- a.7z | grep -q '^Path = a.png$'

media ffmpeg -v error -f lavfi -i testsrc=size=160x120:rate=10 -f lavfi -i sine -t 1 -pix_fmt yuv420p a.mp4
media ffprobe -v error -show_entries stream=codec_name -of csv=p=0 a.mp4 | sort | tr '\n' ' ' | grep -qx 'aac h264 '

printf '=6*7,WORKSTEAD 42\n' > a.csv
convert() { soffice "-env:UserInstallation=file://$PWD/profile" --headless --convert-to "$1" "$2" >/dev/null 2>&1; }
convert xlsx a.csv
convert pdf a.xlsx
pdftotext -layout a.pdf - | grep -q 'WORKSTEAD 42'
pdftoppm -r 200 -png -singlefile a.pdf page
tesseract page.png - 2>/dev/null | grep -q 'WORKSTEAD 42'
python3 -c 'import uno'

printf '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"/>' > a.svg
rsvg-convert a.svg -o svg.png
python3 -c 'from PIL import Image; assert Image.open("svg.png").size == (8, 4)'
echo "smoke passed"
