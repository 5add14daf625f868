//! An agent that tries to get out of its sandbox, or to take the machine down with it.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use arpo::env::guest::Command;

use super::{desktop, shell, told, wanted};

#[tokio::test]
async fn nothing_of_the_host_can_be_written() {
    if !wanted("nothing_of_the_host_can_be_written") {
        return;
    }
    let mut machine = desktop(&[]).await;
    let name = format!("arpo-escape-{}", std::process::id());
    let script = format!(
        "for dir in / /usr /usr/local/bin /etc /etc/fonts /opt/arpo /opt/arpo/bin /opt/arpo/home \
         /var /dev /sys /proc/sys/kernel /home /boot /root /srv /mnt; do \
         touch $dir/{name} 2>/dev/null && echo $dir; done; \
         echo x 2>/dev/null >>/opt/arpo/arpo && echo arpo; \
         echo x 2>/dev/null >>/usr/bin/env && echo env; \
         echo 1 2>/dev/null >/proc/sys/kernel/core_pattern && echo core; \
         mount -t tmpfs x /mnt 2>/dev/null && echo mount; \
         unshare -r true 2>/dev/null && echo namespace; \
         mount -o remount,rw /usr 2>/dev/null && echo remount; true"
    );
    assert_eq!(told(machine.as_ref(), &script).await, "");
    // Its own folders are not the host's.
    told(machine.as_ref(), &format!("touch /tmp/{name} /run/{name}")).await;
    for folder in ["/tmp", "/run", "/"] {
        assert!(!fs::exists(format!("{folder}/{name}")).unwrap());
    }
    machine.close().await.unwrap();
}

#[tokio::test]
async fn nothing_private_of_the_host_can_be_read() {
    if !wanted("nothing_private_of_the_host_can_be_read") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let mut machine = desktop(&[]).await;
    let script = format!(
        "cat {} 2>/dev/null; cat /etc/shadow /etc/gshadow /etc/ssl/private/* /etc/ssh/* \
         /etc/machine-id.real /etc/sudoers 2>/dev/null; [ {home} = $HOME ] || ls -A {home} 2>/dev/null; \
         ls -A /root /srv /var/lib /var/log /sys /boot 2>/dev/null; \
         env | grep -v -e ^HOME= -e ^PATH= | grep -e CARGO -e TOKEN -e /root; \
         for process in /proc/[0-9]*; do ( cd $process && \
         ls root/etc/shadow root{home} cwd/Cargo.toml 2>/dev/null ); done; true",
        secret.display()
    );
    assert_eq!(told(machine.as_ref(), &script).await, "");
    machine.close().await.unwrap();
}

#[tokio::test]
async fn no_network_and_no_socket_of_the_host_is_reached() {
    if !wanted("no_network_and_no_socket_of_the_host_is_reached") {
        return;
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    // As X servers have one beside theirs in /tmp.
    let name = format!("/tmp/.X11-unix/X{port}");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let mut machine = desktop(&[]).await;
    let script = format!(
        r#"
import socket
def reached(what, family, address):
    s = socket.socket(family)
    s.settimeout(3)
    try:
        s.connect(address)
        print(what)
    except OSError:
        pass
reached("loopback", socket.AF_INET, ("127.0.0.1", {port}))
reached("network", socket.AF_INET, ("192.0.2.1", 80))
reached("unix", socket.AF_UNIX, "{}")
reached("abstract", socket.AF_UNIX, "\0{name}")
reached("ours", socket.AF_UNIX, "\0/tmp/.X11-unix/X0")
print(*sorted(name for _, name in socket.if_nameindex()))
"#,
        path.display()
    );
    let command = Command::program(["python3", "-c", &script]);
    let output = machine.guest().execute(&command).await.unwrap();
    assert_eq!(output.stdout, "ours\nlo\n", "{}", output.stderr);
    machine.close().await.unwrap();
}

#[tokio::test]
async fn no_process_outside_is_seen_or_signalled() {
    if !wanted("no_process_outside_is_seen_or_signalled") {
        return;
    }
    let mut one = desktop(&[]).await;
    let mut other = desktop(&[]).await;
    let ours = std::process::id();
    let script = format!(
        "pgrep -xc Xvfb; kill -0 {ours} 2>/dev/null && echo signalled; \
         ls -d /tmp/.X11-unix/*; kill -9 -1; true"
    );
    // It kills its own server at last, so that its words come back in a file or not at all.
    let _ = one.guest().execute(&Command::shell(&script)).await;
    let count = told(other.as_ref(), "pgrep -xc Xvfb; ls -d /tmp/.X11-unix/*").await;
    assert_eq!(count, "1\n/tmp/.X11-unix/X0");
    let seen = told(other.as_ref(), &format!("kill -0 {ours} 2>&1 || true")).await;
    assert!(seen.contains("No such process"), "{seen}");
    one.revert().await.unwrap();
    assert_eq!(told(one.as_ref(), "pgrep -xc Xvfb").await, "1");
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_forged_socket_leads_nowhere() {
    if !wanted("a_forged_socket_leads_nowhere") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut machine = desktop(&[]).await;
    let forge = format!(
        "cd /run/arpo && rm -f 8080.sock 9222.sock && ln -s {} 8080.sock && mkdir elsewhere && \
         ln -s /run/arpo/guest.sock 9222.sock",
        path.display()
    );
    told(machine.as_ref(), &forge).await;
    for port in [8080, 9222] {
        assert!(machine.connect(port).await.is_err(), "{port}");
    }
    // The whole folder moved away and a link in its place.
    let forge = format!(
        "mv /run/arpo /run/away && ln -s {} /run/arpo",
        folder.path().display()
    );
    told(machine.as_ref(), &forge).await;
    assert!(machine.connect(8080).await.is_err());
    let _ = machine.restart_server().await;
    assert!(listener.accept().is_err(), "somebody came out");
    machine.revert().await.unwrap();
    machine.close().await.unwrap();
}

#[tokio::test]
async fn a_fork_bomb_stays_within_its_limit() {
    if !wanted("a_fork_bomb_stays_within_its_limit") {
        return;
    }
    let mut bombed = desktop(&["env.xvfb.max_processes=128"]).await;
    let mut other = desktop(&[]).await;
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 1";
    let command = Command::program(["bash", "-c", bomb]);
    let _ = bombed.guest().launch(&command).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The other, which may have another user or the same, goes on.
    assert_eq!(told(other.as_ref(), "echo alive").await, "alive");
    bombed.revert().await.unwrap();
    assert_eq!(told(bombed.as_ref(), "echo alive").await, "alive");
    bombed.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_the_desktops_own() {
    if !wanted("a_full_disk_is_the_desktops_own") {
        return;
    }
    let mut machine = desktop(&["env.xvfb.home_mb=32", "env.xvfb.tmp_mb=16"]).await;
    let fill = "for dir in /home/user /tmp; do \
                dd if=/dev/zero of=$dir/fill bs=1M 2>&1 | grep -c 'No space left'; \
                du -m $dir/fill | cut -f1; done";
    let output = shell(machine.as_ref(), fill).await;
    let numbers: Vec<u32> = output
        .stdout
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let [1, home, 1, tmp] = numbers[..] else {
        panic!("{output:?}");
    };
    assert!(home <= 32 && tmp <= 16, "{numbers:?}");
    // It looks and acts on; the next episode has room.
    machine.guest().screenshot().await.unwrap();
    machine.revert().await.unwrap();
    told(
        machine.as_ref(),
        "dd if=/dev/zero of=/home/user/some bs=1M count=8",
    )
    .await;
    machine.close().await.unwrap();
}
