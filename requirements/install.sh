#!/bin/sh
# Builds .venv/, or the folder named as $2, from requirements/$1.txt, and does nothing where that
# has been done already.
set -eu
cd "$(dirname "$0")/.."
wanted="requirements/$1.txt"
folder="${2:-.venv}"

can_be_used() {
    # Run, not only found: the shims of version managers exist without a Python behind them.
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.14 python3; do
        if can_be_used "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.12 or later with venv is needed: install it (Debian and Ubuntu: python3.12-venv;" \
        "macOS: brew install python@3.13; anywhere: uv python install 3.13), or run" \
        "'make PYTHON=/path/to/python3'." >&2
    exit 1
}

if ! "$folder/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
    python=$(find_python)
    echo "Building $folder with $("$python" -V) ..." >&2
    "$python" -m venv --clear "$folder"
fi

# What is installed is remembered as a copy of the list: the times of files change with every
# checkout. The list for development has all of the service's.
for installed in "$1" dev; do
    if cmp -s "requirements/$installed.txt" "$folder/installed-$installed.txt"; then
        exit 0
    fi
done
echo "Installing $wanted ..." >&2
rm -f "$folder"/installed-*.txt
"$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-input \
    --require-hashes --no-deps -r "$wanted"
cp "$wanted" "$folder/installed-$1.txt"
