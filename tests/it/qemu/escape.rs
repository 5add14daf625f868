//! An agent that has root inside and tries to get out of its virtual machine.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;

use arpo::env::guest::Command;
use arpo::env::{Machine, Provider, Reporter};

use super::{config, provider, qemu_of, told, turn, wanted};

/// The port of guests' servers, in /proc/net/tcp.
const SERVER: &str = "0100007F:1388";

/// A machine that is up.
async fn machine(desktop: u32) -> Box<dyn Machine> {
    let provider = provider(config(&["env.qemu.spare=false"]));
    let mut machine = provider.machine(desktop, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    machine
}

/// Connections that have come in.
fn accepted(listener: &TcpListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    let mut count = 0;
    loop {
        match listener.accept() {
            Ok(_) => count += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Listening sockets by their local address, as a table of /proc has them.
fn listening(table: &str) -> Vec<String> {
    let text = fs::read_to_string(table).unwrap();
    let rows = text.lines().skip(1);
    let fields = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let listening = fields.filter(|fields| fields[3] == "0A");
    // The inode tells sockets of one address apart.
    listening
        .map(|fields| format!("{} {}", fields[1], fields[9]))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_network_is_reached() {
    if !wanted("no_network_is_reached") {
        return;
    }
    let _turn = turn().await;
    let mut one = machine(0).await;
    let mut other = machine(1).await;
    // Another machine's, that anybody in there can reach.
    let serve = "import socket; s = socket.create_server(('0.0.0.0', 9222)); \
                 exec('while 1: s.accept()[0].sendall(b\"x\")')";
    let command = Command::program(["python3", "-c", serve]);
    other.guest().launch(&command).await.unwrap();
    told(
        other.as_ref(),
        "until grep -q ':2406 .* 0A ' /proc/net/tcp; do sleep 0.1; done",
    )
    .await;
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    // As a control: from here each is reached.
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    assert_eq!(accepted(&tcp), 1);
    other.connect(9222).await.unwrap();

    let script = format!(
        r#"
import socket, struct
def reached(what, family, kind, address, say=b""):
    try:
        s = socket.socket(family, kind)
        s.settimeout(2)
        s.connect(address)
        if say:
            s.send(say)
            s.recv(512)
        print(what)
    except OSError:
        pass
def tcp(what, address, family=socket.AF_INET):
    reached(what, family, socket.SOCK_STREAM, address)
tcp("own server", ("127.0.0.1", 5000))
tcp("own server by its card", ("10.0.2.15", 5000))
for host in ("127.0.0.1", "10.0.2.2", "10.0.2.3", "10.0.2.4"):
    tcp(f"listener by {{host}}", (host, {port}))
    tcp(f"other machine by {{host}}", (host, 9222))
for host in ("10.0.2.2", "10.0.2.16"):
    tcp(f"server of {{host}}", (host, 5000))
tcp("world", ("192.0.2.1", 80))
tcp("listener by IPv6", ("fec0::2", {port}), socket.AF_INET6)
question = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\x07example\x03org\0\0\1\0\1"
reached("names", socket.AF_INET, socket.SOCK_DGRAM, ("10.0.2.3", 53), question)
tcp("names by TCP", ("10.0.2.3", 53))
"#
    );
    let routes = "echo password | sudo -S sh -c 'ip route add default via 10.0.2.2 || \
                  busybox ip route add default via 10.0.2.2'";
    for prepared in ["true", routes] {
        told(one.as_ref(), prepared).await;
        let command = Command::program(["python3", "-c", &script]);
        let output = one.guest().execute(&command).await.unwrap();
        assert_eq!(output.returncode, 0, "{output:?}");
        let reached = "own server\nown server by its card\n";
        assert_eq!(output.stdout, reached, "after {prepared}");
    }
    assert_eq!(accepted(&tcp), 0);
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn qemu_may_nothing_and_its_port_is_nobodys() {
    if !wanted("qemu_may_nothing_and_its_port_is_nobodys") {
        return;
    }
    let _turn = turn().await;
    let mut machine = machine(0).await;
    let qemu = qemu_of(machine.as_ref());
    let status = fs::read_to_string(format!("/proc/{qemu}/status")).unwrap();
    let field = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")));
        let value = line.unwrap().split_once(':').unwrap().1;
        value.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let ours = rustix::process::geteuid().as_raw();
    for ids in ["Uid", "Gid"] {
        let ids = field(ids);
        let ids: Vec<u32> = ids.split(' ').map(|id| id.parse().unwrap()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        // Root's machines have users of their own.
        assert!(ours != 0 || ids[0] >= 2_000_000_000, "{ids:?}");
    }
    for (name, value) in [
        ("Seccomp", "2"),
        ("NoNewPrivs", "1"),
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapInh", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
    ] {
        assert_eq!(field(name), value, "{name}");
    }
    for space in ["net", "mnt", "pid", "ipc", "user", "uts"] {
        let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/{space}")).unwrap();
        // Where root makes it, it needs no other users.
        if space != "user" || ours != 0 {
            assert_ne!(of(&qemu.to_string()), of("self"), "{space}");
        }
    }
    let within = listening(&format!("/proc/{qemu}/net/tcp"));
    let is_server = |socket: &&String| socket.starts_with(SERVER);
    assert_eq!(within.iter().filter(is_server).count(), 1, "{within:?}");
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let here = listening(table);
        assert!(
            !here.iter().any(|socket| within.contains(socket)),
            "{here:?}"
        );
    }
    machine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_machines_start_from_stays_as_it_is() {
    if !wanted("what_machines_start_from_stays_as_it_is") {
        return;
    }
    let _turn = turn().await;
    let mut machine = machine(0).await;
    let image = config(&[]).image_folder();
    let looked = || {
        let mut files: Vec<_> = ["disk.qcow2", "vmlinux", "initrd.cpio"]
            .map(|name| image.join(name))
            .into();
        for folder in fs::read_dir(image.join("snapshots")).unwrap() {
            let names = ["memory", "overlay.qcow2", "fresh.qcow2", "initrd"];
            files.extend(names.map(|name| folder.as_ref().unwrap().path().join(name)));
        }
        let facts = |path: &std::path::PathBuf| {
            let data = fs::metadata(path).ok()?;
            let written = (data.mtime(), data.mtime_nsec());
            Some((path.clone(), data.ino(), data.len(), written, data.mode()))
        };
        files.iter().filter_map(facts).collect::<Vec<_>>()
    };
    let before = looked();
    let disk = before[0].4 & 0o777;
    assert_eq!(disk, 0o444, "disk.qcow2 may be written: {disk:o}");
    // All that root inside can write to: the disk below its file system, its own kernel's words.
    let writes = "echo password | sudo -S sh -c 'dd if=/dev/urandom of=/dev/vda bs=1M count=16 \
                  conv=fsync; echo 3 >/proc/sys/vm/drop_caches' 2>&1; true";
    told(machine.as_ref(), writes).await;
    machine.revert().await.unwrap();
    assert_eq!(
        told(machine.as_ref(), "ls -A Desktop; whoami").await,
        "user"
    );
    // Others may have made or removed snapshots; none that was there has changed.
    let after = looked();
    for file in before {
        assert!(after.contains(&file) || !file.0.exists(), "{file:?}");
    }
    machine.close().await.unwrap();
}
