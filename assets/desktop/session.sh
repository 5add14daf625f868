# The session of one desktop, run by bash as the sandbox's only program: an X server, a window
# manager, the accessibility bus, the guest server. It ends when the X server does, or when its
# standard input ends, which is when the engine dies. "restart" on a line of it starts the guest
# server anew.
set -u
run=/run/arpo
say() { echo "$*" >&2; }
# Starts a program apart from the engine's pipes; its words go to a file of their own.
start() {
    local log=$1
    shift
    "$@" </dev/null >"$run/$log.log" 2>&1 3<&- &
}
exec 3<&0 </dev/null >/dev/null
# Of this user namespace alone, since Linux 5.14; before, all of the user's on the host count.
ulimit -u "$ARPO_PROCESSES" || exit 1

cp -r --preserve=mode,timestamps,links /opt/arpo/home/. "$HOME"/ || exit 1
cd "$HOME" || exit 1
mkdir -p -m 0700 "$XDG_RUNTIME_DIR" && mkdir -p -m 1777 /tmp/.X11-unix || exit 1

# Without a program that draws a background the screen is white: black is for broken ones.
start x Xvfb "$DISPLAY" -screen 0 "$ARPO_SCREEN" -nolisten tcp -noreset -wr
x=$!
until [ -S "/tmp/.X11-unix/X${DISPLAY#:}" ]; do
    if ! kill -0 $x 2>/dev/null; then
        say "the X server did not start: $(tail -n 3 $run/x.log)"
        exit 1
    fi
    sleep 0.01
done

serve() {
    while :; do
        start server /opt/arpo/arpo guest --display "$DISPLAY" --listen "unix:$run/guest.sock" \
            --relay 9222 --relay 8080
        echo $! >$run/server.pid
        wait $!
        say "the guest server ended ($?): $(tail -n 1 $run/server.log)"
        sleep 0.1
    done
}

if command -v dbus-daemon >/dev/null; then
    start bus dbus-daemon --session --nofork --nopidfile --address="$DBUS_SESSION_BUS_ADDRESS"
    if [ -x /usr/libexec/at-spi-bus-launcher ]; then
        until [ -S "${DBUS_SESSION_BUS_ADDRESS#unix:path=}" ] || ! kill -0 $! 2>/dev/null; do
            sleep 0.01
        done
        start at-spi /usr/libexec/at-spi-bus-launcher --launch-immediately
    fi
fi
start wm openbox --startup "touch $run/wm"
serve 3<&- &
command -v pcmanfm >/dev/null && start files pcmanfm --desktop

# The engine's words, and its death.
{
    while read -r word; do
        if [ "$word" = restart ]; then
            # Gone first, so that the engine does not take the old one's for the new one's.
            rm -f $run/*.sock
            kill -9 "$(<$run/server.pid)"
        fi
    done
    kill -9 $x
} <&3 &
exec 3<&-

wait $x
say "the X server ended ($?): $(tail -n 1 $run/x.log)"
exit 1
