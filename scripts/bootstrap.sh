#!/bin/sh
# Makes .venv from uv.lock: `sh scripts/bootstrap.sh dev` (tests and checks too) or `runtime` (the product alone).
# This file only answers "is there anything to do?" and finds a Python; the work is done by bootstrap.py.
# A second call costs a few milliseconds: it compares one stamp.
set -eu

cd "$(dirname "$0")/.."
level=${1:?"usage: sh scripts/bootstrap.sh dev|runtime"}
unset PYTHONHOME PYTHONPATH

# The stamp names the place too: console scripts hold absolute paths, so a moved directory is installed anew.
stamp="$(pwd -P)
$(cksum uv.lock scripts/bootstrap.py)"

is_installed() {
    [ -x .venv/bin/python ] && [ -r ".venv/.installed-$1" ] && [ "$(cat ".venv/.installed-$1")" = "$stamp" ]
}
if is_installed dev || { [ "$level" = runtime ] && is_installed runtime; }; then exit 0; fi

# 3.11 first: the version that the project is typed for and tested with most.
old=""
incomplete=""
for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3.14 python3 python; do
    # A name may be there and not run (a version manager's shim), or be too old for this very line: both are passed over.
    found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2], int(sys.version_info >= (3, 11)))' \
        2>/dev/null </dev/null) || continue
    case $found in
        *" 1") ;;
        *) old="$old $candidate (${found% *})"; continue ;;
    esac
    if ! "$candidate" -c 'import ensurepip, venv' 2>/dev/null </dev/null; then
        incomplete="$incomplete $candidate (${found% *})"
        version=${found% *}
        continue
    fi
    exec "$candidate" scripts/bootstrap.py "$level" "$stamp"
done

if [ -n "$incomplete" ]; then
    echo "bootstrap: found$incomplete, but without the parts of Python that make a virtual environment (ensurepip)." >&2
    echo "Debian and Ubuntu keep them apart:  apt install python$version-venv   Then run make again." >&2
else
    echo "bootstrap: Python 3.11 or newer is needed; found:${old:- none}." >&2
    echo "Install one, or name it:  make PYTHON=/path/to/python3.11 ..." >&2
fi
exit 69
