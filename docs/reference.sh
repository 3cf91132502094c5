#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reference.sh DOXYGEN SOURCES VERSION OUTPUT: writes the documentation as pages to OUTPUT/html. Fails with
# what doxygen warns of, and where a page links to a page or a place that there is not.
set -euo pipefail
doxygen=$1 sources=$2 version=$3 output=$4
mkdir -p "$output"
output=$(realpath "$output")
cd "$sources"
rm -rf "$output/html"
sed -e "s|@VERSION@|$version|" -e "s|@OUTPUT@|$output|" -e "s|@SOURCES@|$PWD|" docs/Doxyfile.in >"$output/Doxyfile"
"$doxygen" "$output/Doxyfile"
if [ -s "$output/warnings" ]; then
    sed "s|$PWD/||" "$output/warnings" >&2
    exit 1
fi
python3 - "$output/html" <<'END'
import html.parser
import pathlib
import sys
import urllib.parse

folder = pathlib.Path(sys.argv[1])


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.places, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])


pages = {path.name: Page(path.read_text(encoding="utf-8")) for path in folder.glob("*.html")}
broken = []
for name, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or link.startswith("javascript:"):
            continue
        to = urllib.parse.unquote(parts.path) or name
        if to not in pages and not (folder / to).exists():
            broken.append(f"{name}: no page {to}")
        elif to in pages and parts.fragment and parts.fragment not in pages[to].places:
            broken.append(f"{name}: {to} has no place #{parts.fragment}")
print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {len(broken)} broken")
print("\n".join(sorted(broken)[:40]), file=sys.stderr)
sys.exit(bool(broken) or len(pages) < 50)
END
