#!/usr/bin/env bash
# Brings what cargo cannot: libtorch (`torch`), the Python the numeric tests compare with
# (`reference`), OSWorld's own evaluators (`sidecar [DIR]`), the programs of real desktops
# (`desktops`), those of virtual machines (`vm`). Does nothing where it is already there. Every
# failure ends in one sentence that says what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.11.0
python=${ARPO_PYTHON:-/usr/bin/python3}

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

check_python() {
    command -v "$python" >/dev/null ||
        fail "no Python at $python: install it (Debian: apt install python3 python3-venv) or name yours in ARPO_PYTHON"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "$python is $("$python" --version 2>&1), torch $torch_version needs 3.10 or newer: name one in ARPO_PYTHON"
    # Debian's python3 has venv but not the ensurepip it needs.
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python cannot make virtual environments: install its venv module (Debian: apt install python3-venv)"
}

check_compiler() {
    command -v "${CXX:-c++}" >/dev/null ||
        fail "no C++ compiler: install one (Debian: apt install g++) or name yours in CXX"
}

# check_disk GB
check_disk() {
    local free_gb
    free_gb=$(df -Pk . | awk 'NR == 2 { print int($4 * 1024 / 1e9) }')
    # A file system that does not tell is tried.
    [ "${free_gb:-$1}" -ge "$1" ] ||
        fail "$free_gb GB free in $PWD, $1 GB are needed: make room or use a checkout on another disk"
}

# torch_in FOLDER: the version of the torch there, empty if there is none.
torch_in() {
    if [ -f "$1/version.py" ]; then
        sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$1/version.py"
    elif [ -f "$1/build-version" ]; then
        sed 's/[+].*//' "$1/build-version"
    fi
}

# is_made VENV WANTED: whether VENV was completed with exactly these packages and still starts.
is_made() {
    [ -f "$1/arpo-setup" ] && [ "$(cat "$1/arpo-setup")" = "$2" ] &&
        "$1/bin/python" -c 'import pip' 2>/dev/null
}

# make_venv VENV WANTED PIP-ARGUMENT...
make_venv() {
    local venv=$1 wanted=$2
    shift 2
    echo "setup: installing $wanted into $venv" >&2
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" ||
        fail "could not make $venv: remove it and try again"
    "$venv/bin/python" -m pip install --disable-pip-version-check "$@" ||
        fail "pip could not install $wanted into $venv: check the network and the lines above, then try again"
    printf '%s\n' "$wanted" >"$venv/arpo-setup"
}

# A libtorch of the user's own wins over ours, if it is the right one.
use_own_libtorch() {
    [ -n "${LIBTORCH:-}" ] || return 1
    local found
    found=$(torch_in "$LIBTORCH")
    [ "$found" = "$torch_version" ] ||
        fail "LIBTORCH=$LIBTORCH holds torch '${found:-none}', arpo needs $torch_version: unset LIBTORCH or point it at that version"
}

setup_torch() {
    check_compiler
    if use_own_libtorch; then return; fi
    local wanted="torch==$torch_version" needed_gb=9
    local arguments=("$wanted")
    if ! nvidia-smi >/dev/null 2>&1; then
        needed_gb=4
        # Without a GPU, all that libtorch opens of CUDA are these two: a tenth of the download.
        local cuda=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
        wanted="$wanted ${cuda[*]}"
        arguments=(--no-deps "${arguments[@]}" "${cuda[@]}")
    fi
    if ! is_made .venv "$wanted"; then
        check_python
        check_disk "$needed_gb"
        make_venv .venv "$wanted" "${arguments[@]}"
    fi
    local folder found
    folder=$(echo .venv/lib/python3*/site-packages/torch)
    found=$(torch_in "$folder")
    [ "$found" = "$torch_version" ] ||
        fail ".venv holds torch '${found:-none}', arpo needs $torch_version: remove .venv and run \`just setup\` again"
    [ "$(readlink .libtorch)" = "$folder" ] || ln -sfn "$folder" .libtorch
}

setup_reference() {
    local wanted
    wanted=$(grep -v '^#' .config/reference.txt | tr '\n' ' ')
    wanted=${wanted% }
    is_made .venv-ref "$wanted" && return
    check_python
    check_disk 9
    make_venv .venv-ref "$wanted" -r .config/reference.txt
}

# setup_sidecar [DIR]
setup_sidecar() {
    local venv=${1:-.venv-sidecar} list=assets/sidecar/requirements.txt wanted
    wanted="the packages of $list, $(sha256sum "$list" | cut -c1-12)"
    is_made "$venv" "$wanted" && return
    check_python
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$python is $("$python" --version 2>&1), OSWorld's evaluators need 3.11 or newer: name one in ARPO_PYTHON"
    check_disk 2
    # The list is whole; what desktop-env asks for beside it weighs gigabytes.
    make_venv "$venv" "$wanted" --no-deps -r "$list"
}

# Debian packages of real desktops, each with a file that tells that it is there.
desktop_packages=(
    adwaita-icon-theme:/usr/share/icons/Adwaita/index.theme
    at-spi2-core:/usr/libexec/at-spi-bus-launcher
    bubblewrap:/usr/bin/bwrap
    chromium:/usr/bin/chromium
    dbus-daemon:/usr/bin/dbus-daemon
    ffmpeg:/usr/bin/ffmpeg
    file:/usr/bin/file
    fonts-dejavu-core:/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
    fonts-liberation:/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf
    gsettings-desktop-schemas:/usr/share/glib-2.0/schemas/org.gnome.desktop.background.gschema.xml
    libglib2.0-bin:/usr/bin/gsettings
    libreoffice-calc:/usr/lib/libreoffice/program/libsclo.so
    libreoffice-gtk3:/usr/lib/libreoffice/program/libvclplug_gtk3lo.so
    libreoffice-impress:/usr/lib/libreoffice/program/libsdlo.so
    libreoffice-writer:/usr/lib/libreoffice/program/libswlo.so
    mousepad:/usr/bin/mousepad
    openbox:/usr/bin/openbox
    pcmanfm:/usr/bin/pcmanfm
    procps:/usr/bin/pkill
    socat:/usr/bin/socat
    wmctrl:/usr/bin/wmctrl
    xdg-utils:/usr/bin/xdg-open
    xterm:/usr/bin/xterm
    xvfb:/usr/bin/Xvfb
)

# Debian packages that make and run virtual machines, each with a file that tells that it is there.
vm_packages=(
    bubblewrap:/usr/bin/bwrap
    e2fsprogs:/sbin/mke2fs
    mmdebstrap:/usr/bin/mmdebstrap
    python3:/usr/bin/python3
    qemu-system-x86:/usr/bin/qemu-system-x86_64
    qemu-utils:/usr/bin/qemu-img
    seabios:/usr/share/seabios/bios-256k.bin
    socat:/usr/bin/socat
)

# install_missing WHAT SWITCH PACKAGE:FILE...: the Debian packages whose file is not there. Needs
# root and Debian; SWITCH is how to do without them.
install_missing() {
    local what=$1 switch=$2 missing=() entry options=()
    shift 2
    for entry in "$@"; do
        [ -e "${entry#*:}" ] || missing+=("${entry%%:*}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local install="apt-get install --no-install-recommends ${missing[*]}"
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null ||
        fail "$what lack ${missing[*]}: install them (Debian: sudo $install), or set $switch=1 to do without their tests"
    echo "setup: installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q ||
        fail "apt could not read its package lists: see the lines above, then try again"
    # Programs of backports, whose source is gone, would be removed for older ones.
    if apt-get install -sq --no-install-recommends "${missing[@]}" | grep '^Remv ' >/dev/null; then
        use_backports
    fi
    apt-get install "${options[@]}" -yq --no-install-recommends --no-remove "${missing[@]}" ||
        fail "apt could not install ${missing[*]}: see the lines above, then try again"
}

# Sets `options` of apt to Debian's backports, from the system's own mirror, with lists of their own.
use_backports() {
    local suite mirror
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mirror=$(apt-get update --print-uris 2>/dev/null |
        sed -n "s#^'\(.*\)/dists/$suite/InRelease'.*#\1#p" | awk 'NR == 1')
    [ -n "$mirror" ] ||
        fail "apt has no source of Debian's $suite: add one to /etc/apt/sources.list.d and try again"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$scratch"/{lists,archives}/partial "$scratch/sources"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" \
        "$suite $suite-updates $suite-backports" /usr/share/keyrings/debian-archive-keyring.gpg \
        >"$scratch/sources/backports.sources"
    options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$scratch/sources"
        -o "Dir::State::Lists=$scratch/lists" -o "Dir::Cache::Archives=$scratch/archives"
        -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= -o APT::Sandbox::User=root
        -t "$suite-backports")
    apt-get "${options[@]}" update -q ||
        fail "apt could not read $suite-backports from $mirror: see the lines above, then try again"
}

setup_desktops() {
    [ "${ARPO_NO_DESKTOPS:-}" != 1 ] || return 0
    install_missing 'real desktops' ARPO_NO_DESKTOPS "${desktop_packages[@]}"
}

setup_vm() {
    [ "${ARPO_NO_VMS:-}" != 1 ] || return 0
    install_missing 'virtual machines' ARPO_NO_VMS "${vm_packages[@]}"
    # Tests take the one that is named.
    [ -n "${ARPO_VM_IMAGE:-}" ] || .config/vm-image.sh
}

case ${1:-} in
torch) setup_torch ;;
reference) setup_reference ;;
sidecar) setup_sidecar "${2:-}" ;;
desktops) setup_desktops ;;
vm) setup_vm ;;
*) fail "write \`.config/setup.sh torch\`, \`reference\`, \`sidecar\`, \`desktops\` or \`vm\`" ;;
esac
