# Puts the distribution's Python and the shared libraries that it, Node and C++ programs need below /opt/kit.
set -eu
kit=/opt/kit
version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$kit/bin" "$kit/lib" "$kit/python/bin" "$kit/python/lib"
cp -L "/usr/bin/$version" "$kit/python/bin/python3"
cp -rL "/usr/lib/$version" "$kit/python/lib/$version"
cd "$kit/python/lib/$version"
rm -rf config-* distutils ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo venv EXTERNALLY-MANAGED
rm -rf dist-packages site-packages sitecustomize.py
find . -name __pycache__ -prune -exec rm -rf {} +
# One way of compiling that depends on bytes only: the kit is mounted read-only, nothing is compiled later.
"/usr/bin/$version" -m compileall -q --invalidation-mode unchecked-hash .

libraries=/lib/x86_64-linux-gnu
find "$kit/python" \( -name '*.so' -o -name python3 \) -exec ldd {} + | awk '/=> \//{print $3}' | sort -u \
  | xargs cp -Lt "$kit/lib"
for name in libc libm libdl libpthread librt libresolv libutil libnss_files libnss_dns libgcc_s libstdc++ libatomic libanl; do
  found=$(find $libraries/ /usr$libraries/ -name "$name.so.[0-9]" -print -quit)
  cp -Lt "$kit/lib" "$found"
done
cp -L $libraries/ld-linux-x86-64.so.2 "$kit/lib/ld.so"
ln -s ld.so "$kit/lib/ld-linux-x86-64.so.2"
