#!/usr/bin/env bash
# Makes the image that virtual machines start from: `vm-image.sh [--no-office] [FOLDER]`, by default
# with LibreOffice Writer into .vm-image. Nothing of a virtual machine runs while it is made, but for
# the trial at the end, without which it is not accepted. Does nothing where the folder holds an
# image of this recipe; newer packages come when the folder is removed. Every failure ends in one
# sentence that says what to do.
set -euo pipefail
# Names have one order everywhere, and files are for others to read: machines have users of their own.
export LC_ALL=C
umask 022
self=$(realpath "$0")
cd "$(dirname "$self")/.."

suite=bookworm
# What the session needs: the applications of sandboxed desktops (.config/setup.sh) that fit.
packages=(
    adwaita-icon-theme at-spi2-core busybox-static dbus-daemon file fonts-dejavu-core
    fonts-liberation gsettings-desktop-schemas libglib2.0-bin mount mousepad openbox passwd pcmanfm
    procps python3 sudo unzip wmctrl x11-utils xdg-utils xserver-xorg-core xserver-xorg-input-evdev
    xterm zip
)
office_packages=(libreoffice-gtk3 libreoffice-writer)
# Not unpacked: what nobody reads there, and drivers of graphics cards, which weigh 200 MB.
excluded=(
    /usr/share/man /usr/share/doc /usr/share/locale /usr/share/info /usr/share/help
    /usr/share/lintian /usr/share/gtk-doc
    /usr/lib/x86_64-linux-gnu/dri '/usr/lib/x86_64-linux-gnu/libLLVM*'
    '/usr/lib/x86_64-linux-gnu/libz3.so*'
)
append='console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off no_timer_check nokaslr audit=0'
# On a loaded machine an emulated guest measures these two clocks wrongly, once by a factor of three,
# and keeps that in its snapshots. Those it has instead need no measuring.
append+=' tsc=unstable nolapic_timer'
append+=' ipv6.disable=1 rdinit=/init'
memory_mb=1024
disk=6G
# Times of the files that are made here, in seconds; the disk's random numbers.
epoch=1700000000
uuid=6172706f-0000-4000-8000-000000000001
# shellcheck disable=SC2016 # Dollars that are meant.
# `password`, by `openssl passwd -6 -salt arpo password`.
password='$6$arpo$49L0hSqSyVmcpwxZSbsktV.Gcj4dUNI5HblRPZTQ0kS5HXPkMtBM9GfnR6pNUv8Gtx9YeZP4UkyZ7rEGKPTLm.'

fail() {
    printf 'vm-image: %s\n' "$1" >&2
    exit 1
}

# phase NAME: says how long the one before took.
phase() {
    local now
    now=$(date +%s%N)
    [ -z "${phase_name:-}" ] ||
        awk -v ns=$((now - phase_at)) -v name="$phase_name" \
            'BEGIN { printf "vm-image: %5.1f s %s\n", ns / 1e9, name }' >&2
    phase_name=$1 phase_at=$now
}

# --- What mmdebstrap runs as root of the new system. ---

# download_kernel SCRATCH: its package, without what it would do when installed.
download_kernel() {
    local kernel
    cd "$1"
    export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
    kernel=$(apt-cache show --no-all-versions linux-image-amd64 |
        sed -n 's/^Depends: \(linux-image-[^ ]*\).*/\1/p')
    # Apt's own user may not come here.
    apt-get download -qq -o APT::Sandbox::User=root "$kernel"
    chmod 0644 "$kernel"_*.deb
    apt-cache show --no-all-versions "$kernel" | sed -n "s/^Version: /$kernel /p" >kernel-package
}

# settle ROOT: what was written since the build began gets the fixed time.
settle() {
    find "$1" \( -path "$1/proc" -o -path "$1/sys" -o -path "$1/dev" \) -prune -o \
        -newer "$scratch/begun" -exec touch -h -d "@$epoch" {} +
}

# shellcheck disable=SC2016 # What other programs expand.
# inside ROOT: from Debian's packages to the disk.
inside() {
    local root=$1
    phase 'kernel package'
    (download_kernel "$scratch")

    phase 'user and files'
    sort <(chroot "$root" dpkg-query -W -f '${Package} ${Version}\n') "$scratch/kernel-package" \
        >"$scratch/packages"
    cp "$root/bin/busybox" "$scratch/busybox"
    chroot "$root" useradd -m -u 1000 -s /bin/bash -G sudo -p "$password" user
    echo desktop >"$root/etc/hostname"
    echo '127.0.0.1 localhost desktop' >"$root/etc/hosts"
    echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
    : >"$root/etc/fstab"
    rm -f "$root/etc/resolv.conf"
    install -d "$root/opt/arpo/bin"
    install -m 0755 assets/desktop/bin/* "$root/opt/arpo/bin"
    install -m 0755 assets/vm/boot "$root/opt/arpo/boot"
    install -m 0644 assets/vm/session assets/vm/xorg.conf "$root/opt/arpo"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/cache/debconf/*-old \
        "$root"/var/log/* "$root"/var/lib/dpkg/*-old

    phase 'home with warm applications'
    # Caches hold the times of folders of fonts: first those, then the caches.
    settle "$root"
    chroot "$root" fc-cache -s -f
    install -d -m 0777 "$root/opt/arpo/etc"
    install -m 0644 assets/desktop/template.sh "$root/opt/arpo/template.sh"
    chroot "$root" env -i HOME=/home/user USER=user LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin \
        setpriv --reuid=1000 --regid=1000 --init-groups /bin/bash /opt/arpo/template.sh
    rm -rf "$root/opt/arpo/etc" "$root/opt/arpo/template.sh" "$root"/tmp/*
    chroot "$root" chmod 0755 /home/user
    settle "$root"

    phase 'file system'
    # A plain bind does not show what is mounted within the root.
    mkdir -p "$scratch/tree"
    truncate -s "$disk" "$scratch/disk.ext4"
    E2FSPROGS_FAKE_TIME=$epoch unshare --mount sh -c 'mount --bind "$1" "$2" &&
        exec mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -m 0 -N 200000 -U "$3" \
            -E lazy_itable_init=1,hash_seed="$3",root_owner=0:0 -d "$2" "$4"' \
        - "$root" "$scratch/tree" "$uuid" "$scratch/disk.ext4"
    phase end
}

# --- What runs as whoever called. ---

# sources: Debian's, with updates and security where the system has them, by apt's own mirror.
sources() {
    apt-get update --print-uris 2>/dev/null |
        sed -nE "s#^'(.*)/dists/($suite(-updates|-security)?)/InRelease'.*#deb \1 \2 main#p" |
        sort -u
}

# recipe: a name that changes with all that the image is made of but packages.
recipe() {
    {
        printf '%s\n' "${packages[@]}" "$append" "$memory_mb"
        cat "$self" .config/vm-pack.py
        for file in assets/vm/* assets/desktop/bin/* assets/desktop/template.sh; do
            printf '%s\n' "$file"
            cat "$file"
        done
    } | sha256sum | cut -d' ' -f1
}

check() {
    local program missing=()
    [ "$(uname -m)" = x86_64 ] ||
        fail "images are made on x86_64, this is $(uname -m): copy the folder of one from there"
    for program in mmdebstrap mke2fs qemu-img qemu-system-x86_64 python3; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    [ ${#missing[@]} -eq 0 ] || fail "${missing[*]} missing: run \`just setup-vm\` first"
    if [ "$(id -u)" -ne 0 ]; then
        { command -v newuidmap && grep "^$(id -un):" /etc/subuid && unshare --user true; } \
            >/dev/null 2>&1 ||
            fail "making an image without root needs user namespaces, uidmap and lines of yours in /etc/subuid and /etc/subgid: set them up (Debian: apt install uidmap; usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)) or run it as root"
    fi
    local free_gb
    free_gb=$(df -Pk "$folder" "${TMPDIR:-/tmp}" |
        awk 'NR > 1 { print int($4 * 1024 / 1e9) }' | sort -n | awk 'NR == 1')
    [ "${free_gb:-6}" -ge 6 ] ||
        fail "$free_gb GB free, 6 GB are needed in $folder and in ${TMPDIR:-/tmp}: make room, or name another FOLDER or TMPDIR"
}

# make_scratch: sets `scratch`, where all is made.
make_scratch() {
    outer=$(mktemp -d "${TMPDIR:-/tmp}/arpo-image.XXXXXX")
    trap 'rm -rf "$outer"' EXIT
    scratch=$outer
    [ "$(id -u)" -ne 0 ] || return 0
    # The root of a user namespace, who makes most of it, is nobody we know: all may write there. But
    # its name cannot be listed, and as in /tmp nobody follows a link that is another's.
    chmod 0711 "$outer"
    scratch=$(mktemp -d "$outer/XXXXXXXXXXXXXXXX")
    chmod 1777 "$scratch"
}

# hold LOCK: until this script ends nobody does what this lock is for.
hold() {
    local held
    exec {held}>>"$1"
    flock -n "$held" ||
        fail "an engine uses the machines of $folder: end it first, or name another FOLDER"
}

# remove_image: unless somebody uses it (src/env/qemu/snapshot.rs). Whoever wants a snapshot waits for
# `snapshots/lock`, which stays, until the new image is there.
remove_image() {
    local lock
    for lock in "$folder"/snapshots/{lock,*.lock}; do
        [ ! -e "$lock" ] || hold "$lock"
    done
    rm -rf "$folder"/{image.json,disk.qcow2,vmlinux,initrd.cpio}
    [ ! -d "$folder/snapshots" ] ||
        find "$folder/snapshots" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
}

main() {
    folder=.vm-image
    while [ $# -gt 0 ]; do
        case $1 in
        --no-office) office_packages=() ;;
        -*) fail "write \`vm-image.sh [--no-office] [FOLDER]\`" ;;
        *) folder=$1 ;;
        esac
        shift
    done
    packages+=("${office_packages[@]}")
    mkdir -p "$folder"
    folder=$(realpath "$folder")
    exec 8>"$folder/.lock"
    flock 8
    local recipe key kernel began=$SECONDS options=() path
    recipe=$(recipe)
    ! grep -qs "\"recipe\": \"$recipe\"" "$folder/image.json" || return 0
    check
    local from
    from=$(sources)
    [ -n "$from" ] ||
        fail "apt has no source of Debian's $suite: add one to /etc/apt/sources.list.d and try again"
    for path in "${excluded[@]}"; do
        options+=(--dpkgopt="path-exclude=$path" --dpkgopt="path-exclude=$path/*")
    done

    remove_image
    make_scratch
    touch -d '1 second ago' "$scratch/begun"
    export scratch SOURCE_DATE_EPOCH=$epoch

    echo "vm-image: making $folder, which takes minutes" >&2
    phase "${#packages[@]} packages and what they need"
    # Of what it would tidy at the end nothing is kept.
    mmdebstrap --quiet --variant=essential --format=null --skip=cleanup/apt \
        --architectures=amd64 --include="$(IFS=,; echo "${packages[*]}")" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
        --aptopt='Acquire::Languages "none"' "${options[@]}" --dpkgopt=force-unsafe-io \
        --customize-hook="exec $(printf '%q' "$self") --inside \"\$1\"" \
        "$suite" /dev/null - <<<"$from" ||
        fail 'mmdebstrap could not make the root: see the lines above, then try again'

    phase 'disk'
    qemu-img convert -f raw -O qcow2 "$scratch/disk.ext4" "$folder/disk.qcow2"
    chmod 0444 "$folder/disk.qcow2"

    phase 'kernel and initrd'
    mkdir "$scratch/kernel"
    dpkg-deb --fsys-tarfile "$scratch"/linux-image-*.deb | tar -x -C "$scratch/kernel" \
        --exclude='*/net/ethernet' --exclude='*/net/wireless' --exclude='*/sound' \
        --exclude='*/media' --exclude='*/amd' --exclude='*/i915' --exclude='*/nouveau' \
        --exclude='*/radeon' --exclude='*/usr/share'
    kernel=$(basename "$scratch"/kernel/boot/vmlinuz-*)
    kernel=${kernel#vmlinuz-}
    .config/vm-pack.py vmlinux "$scratch/kernel/boot/vmlinuz-$kernel" "$folder/vmlinux"
    .config/vm-pack.py initrd "$scratch/kernel/lib/modules/$kernel" "$scratch/busybox" \
        assets/vm/init "$folder/initrd.cpio"

    phase 'trial'
    key=$(cat <(echo "$recipe") "$scratch/packages" | sha256sum | cut -d' ' -f1)
    .config/vm-try.py "$folder" "$append" "$memory_mb" ||
        fail "the image in $folder does not work: see the lines above"
    .config/vm-pack.py describe "$scratch/packages" "$folder/image.json" "key=$key" \
        "recipe=$recipe" "suite=$suite" architecture=x86_64 "kernel=$kernel" "append=$append" \
        "memory_mb=$memory_mb" smp=1 "made_at=$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        "made_s=$((SECONDS - began))"
    phase end
    echo "vm-image: $folder, $(du -sm "$folder" | cut -f1) MB, in $((SECONDS - began)) s" >&2
}

case ${1:-} in
--inside) inside "$2" ;;
*) main "$@" ;;
esac
# Not a line more, should the file be changed meanwhile.
exit
