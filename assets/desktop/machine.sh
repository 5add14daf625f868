# What runs around a virtual machine, by bash as the sandbox's only program: `machine.sh QEMU
# ARGUMENTS...`. It ends when QEMU does, or when its standard input ends, which is when the engine
# dies. The guest's server is reached through a socket, like that of any sandbox.
set -u
run=/run/arpo
exec {engine}<&0 </dev/null >/dev/null
# A write beyond the limit is an error that QEMU tells of, not its death.
trap '' XFSZ

# QEMU alone has the files that were handed over, from 3 on.
socat "UNIX-LISTEN:$run/guest.sock,fork,max-children=256" TCP4:127.0.0.1:5000 \
    {engine}<&- 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 2>$run/socat.log &
"$@" {engine}<&- 2>$run/qemu.log &
qemu=$!
touch $run/up

# The engine's death.
{
    while read -r _; do :; done
    kill -9 $qemu
} <&"$engine" &
exec {engine}<&-

wait $qemu
echo "QEMU ended ($?): $(tail -n 1 $run/qemu.log)" >&2
exit 1
