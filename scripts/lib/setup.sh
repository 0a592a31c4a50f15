# Installs what is missing, and only that. Sourced by the scripts beside this folder, from the root.
# shellcheck shell=bash

stamps=.venv/.ramet

export PIP_DISABLE_PIP_VERSION_CHECK=1
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1

say() { printf '   %s\n' "$*"; }

die() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

# --- Stamps: what was done for which content ---------------------------------------------------

digest() { sha256sum "$@" | sha256sum | cut -d' ' -f1; }

is_done() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }

mark_done() {
    mkdir -p "$stamps"
    printf '%s\n' "$2" >"$stamps/$1"
}

# --- Locks: an open file descriptor of the script itself, so nothing is left behind --------------

# hold FD FILE WHAT: waits until nobody else holds FILE, and says so.
hold() {
    command -v flock >/dev/null || {
        say "flock is missing (package util-linux): make sure that nothing else runs here."
        return 0
    }
    eval "exec $1<\"\$2\""
    flock --nonblock "$1" || {
        say "Waiting for another $3 in this folder to end ..."
        flock "$1"
    }
}

# --- apt ----------------------------------------------------------------------------------------

apt_install() {
    local as_root=()
    command -v apt-get >/dev/null || die "Missing: $*. There is no apt-get here: install it your way, then start again."
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "Missing: $*. As root run: apt-get update && apt-get install -y $*"
        as_root=(sudo)
    fi
    say "Installing with apt: $*"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# --- Python -------------------------------------------------------------------------------------

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python; do
        if [[ -n $candidate ]] && is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "Python 3.11 or newer is needed (on Debian: apt-get install python3 python3-venv). PYTHON=/path/to/python3 names one."
}

make_venv() {
    local python
    if [[ -x .venv/bin/python ]] && is_new_enough .venv/bin/python; then
        return
    fi
    python=$(find_python)
    say "Making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
    "$python" -m venv .venv
}

# install_python NAME EXTRAS: the package itself, editable, with the extras.
install_python() {
    local content
    make_venv
    content=$(digest pyproject.toml)
    if is_done "python-$1" "$content" || is_done python-dev "$content"; then
        return
    fi
    say "Installing the Python packages ($1)"
    .venv/bin/python -m pip install -qq --editable ".[$2]"
    mark_done "python-$1" "$content"
}

install_runtime() { install_python runtime openai,anthropic; }

install_dev() { install_python dev dev; }

# --- Node ---------------------------------------------------------------------------------------

check_node() {
    command -v node >/dev/null && command -v npm >/dev/null ||
        die "Node 20 or newer is needed, with npm (on Debian 13: apt-get install nodejs npm)."
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' ||
        die "Node 20 or newer is needed; this is $(node --version)."
}

npm_folders() {
    find . \( -name node_modules -o -name '.?*' \) -prune -o -name package-lock.json -print |
        sed -e 's|^\./||' -e 's|/package-lock.json$||' | sort
}

install_npm() {
    local folder=$1 name content
    name=npm-${folder//\//-}
    content=$(digest "$folder/package-lock.json")
    if [[ -d $folder/node_modules ]] && is_done "$name" "$content"; then
        return
    fi
    check_node
    say "Installing the npm packages of $folder"
    (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error)
    mark_done "$name" "$content"
}

# --- The page of the demo -----------------------------------------------------------------------

build_page() {
    local content
    [[ -d web ]] || {
        say "No web/ here: the page is not built."
        return 0
    }
    content=$(find web -name node_modules -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | digest -)
    if [[ -f src/ramet/demo/page/index.html ]] && is_done page "$content"; then
        return
    fi
    install_npm web
    say "Building the page"
    (cd web && npm run --silent build -- --logLevel error)
    mark_done page "$content"
}

# --- The browser --------------------------------------------------------------------------------

install_browser() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || apt_install chromium
}
