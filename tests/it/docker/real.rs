//! The same against a real daemon, where `docker info` works: an image of a few programs of this
//! host, with `arpo guest` on Xvfb in place of a virtual machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use arpo::config::Resolved;
use arpo::env::docker::{Docker, DockerOptions};
use arpo::env::guest::Command as Program;
use arpo::env::{Machine, MachineState, Provider};
use arpo::types::MachinePhase;

use super::{until, write_disk};
use crate::machines::Heard;

const IMAGE: &str = "arpo-test-guest";

/// What the image starts: `arpo guest` listens on a socket, since beyond loopback it wants a token.
const ENTRY: &str = "#!/usr/bin/sh
test -r /System.qcow2 || { echo no disk; exit 9; }
if ( : >> /System.qcow2 ) 2>/dev/null; then echo the disk can be written; exit 9; fi
echo RAM_SIZE is $RAM_SIZE
Xvfb :0 -screen 0 320x320x24 -nolisten tcp -nolisten local -ac &
until test -S /tmp/.X11-unix/X0; do sleep 0.1; done
socat TCP-LISTEN:5000,fork,reuseaddr UNIX-CONNECT:/tmp/guest.sock &
exec arpo guest --display :0 --listen unix:/tmp/guest.sock
";

/// Programs of this host that the image has.
const PROGRAMS: [&str; 8] = [
    "/usr/bin/sh",
    "/usr/bin/sleep",
    "/usr/bin/echo",
    "/usr/bin/ls",
    "/usr/bin/touch",
    "/usr/bin/socat",
    "/usr/bin/Xvfb",
    "/usr/bin/xkbcomp",
];

/// Whether a daemon is there; the test is skipped by its name otherwise.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
fn wanted(test: &str) -> bool {
    let mut info = Command::new("docker");
    info.arg("info").stdout(Stdio::null()).stderr(Stdio::null());
    let answers = info.status().is_ok_and(|status| status.success());
    let lacking = PROGRAMS.iter().find(|program| !Path::new(program).exists());
    match (answers, lacking) {
        (true, None) => return true,
        (false, _) => eprintln!("skipped, `docker info` does not work: {test}"),
        (true, Some(program)) => eprintln!("skipped, there is no {program}: {test}"),
    }
    false
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A program's file and those that it is linked with.
fn files_of(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let words = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    words
        .map(PathBuf::from)
        .chain([program.to_owned()])
        .collect()
}

/// Makes the image of a folder.
fn import(folder: &Path) {
    let root = folder.join("root");
    let copy = |from: &Path, to: &Path| {
        let to = root.join(to.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    for program in PROGRAMS {
        for file in files_of(Path::new(program)) {
            copy(&file, &file);
        }
    }
    let arpo = Path::new(env!("CARGO_BIN_EXE_arpo"));
    for file in files_of(arpo) {
        let to = if file == arpo {
            Path::new("/usr/bin/arpo")
        } else {
            &file
        };
        copy(&file, to);
    }
    fs::write(root.join("entry"), ENTRY).unwrap();
    fs::set_permissions(root.join("entry"), fs::Permissions::from_mode(0o755)).unwrap();
    for empty in ["tmp", "usr/share/X11"] {
        fs::create_dir_all(root.join(empty)).unwrap();
    }
    // Where the X server looks for a shell.
    std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
    let keyboards = root.join("usr/share/X11");
    let copied = Command::new("cp")
        .arg("-rL")
        .arg("/usr/share/X11/xkb")
        .arg(keyboards)
        .status();
    assert!(copied.unwrap().success());
    let tar = folder.join("root.tar");
    let packed = Command::new("tar")
        .arg("-C")
        .arg(&root)
        .arg("-cf")
        .arg(&tar)
        .arg(".")
        .status();
    assert!(packed.unwrap().success());
    let change = "ENTRYPOINT [\"/entry\"]";
    docker(&["import", "--change", change, tar.to_str().unwrap(), IMAGE]);
}

/// Containers of this process, by their ids.
fn ours() -> Vec<String> {
    let label = format!("label=arpo.pid={}", std::process::id());
    let ids = docker(&["ps", "-aq", "--filter", &label]);
    ids.lines().map(str::to_owned).collect()
}

async fn said(machine: &dyn Machine, script: &str) -> String {
    let output = machine
        .guest()
        .execute(&Program::shell(script))
        .await
        .unwrap();
    output.stdout.trim().to_owned()
}

#[tokio::test]
async fn a_real_daemon_does_what_is_asked_of_it() {
    if !wanted("a_real_daemon_does_what_is_asked_of_it") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    import(folder.path());
    let disk = folder.path().join("disk.qcow2");
    write_disk(&disk);
    let disk = format!("env.docker.disk={}", disk.display());
    let image = format!("env.docker.image={IMAGE}");
    let sets = [
        image.as_str(),
        &disk,
        "env.docker.screen_width=320",
        "env.docker.screen_height=320",
        "env.docker.ram_gb=1",
        "env.docker.kvm=off",
        "env.docker.boot_deadline_s=60",
    ];
    let env = Resolved::load::<&str>(&[], &sets).unwrap().profile.env;
    let docker_host = std::env::var("DOCKER_HOST").ok();
    let options = DockerOptions {
        poll: Duration::from_millis(50),
        desktops: 1,
        ..DockerOptions::new(&env, docker_host.as_deref())
    };

    // What a dead engine left, a volume with it, and what is nobody's of ours.
    let left = [
        "arpo.run=r",
        "arpo.created=1",
        "arpo.lease=1",
        "arpo.desktop=0",
        "arpo.machine=0",
    ];
    let dead = arpo::store::LockHolder::this_process();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let more = [
        format!("arpo.host={}", dead.host),
        format!("arpo.boot={}", dead.boot),
        format!("arpo.pidns={}", namespace.display()),
        "arpo.pid=8388608".to_owned(),
        "arpo.started=1".to_owned(),
    ];
    let labels = left.iter().copied().chain(more.iter().map(String::as_str));
    let labels: Vec<&str> = labels.flat_map(|label| ["--label", label]).collect();
    let orphan = docker(&[&["create", "-v", "/left"], &labels[..], &[IMAGE]].concat());
    let mount = "{{range .Mounts}}{{.Name}}{{end}}";
    let volume = docker(&["inspect", "--format", mount, &orphan]);
    assert!(!volume.is_empty());
    let others = docker(&["create", IMAGE]);

    let provider = Docker::new(options).unwrap();
    let all = docker(&["ps", "-aq", "--no-trunc"]);
    assert!(!all.contains(&orphan) && all.contains(&others));
    assert!(!docker(&["volume", "ls", "-q"]).contains(&volume));
    docker(&["rm", &others]);

    let heard = Heard::default();
    let mut machine = provider.machine(0, heard.reporter()).unwrap();
    machine.revert().await.unwrap();
    assert!(
        heard.said().contains(&"RAM_SIZE is 1G".to_owned()),
        "{:?}",
        heard.said()
    );
    said(machine.as_ref(), "touch /mark").await;
    assert_eq!(said(machine.as_ref(), "ls /mark").await, "/mark");
    let first = ours();
    let ports = docker(&["port", &first[0]]);
    assert_eq!(ports.lines().count(), 4, "{ports}");
    assert!(
        ports.lines().all(|line| line.contains("-> 127.0.0.1:")),
        "{ports}"
    );
    until(|| machine.memory_bytes().is_some()).await;

    machine.suspend().await.unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(1), machine.guest().platform()).await;
    assert!(!matches!(asked, Ok(Ok(_))), "its time stands still");
    machine.wake().await.unwrap();
    assert_eq!(machine.guest().platform().await.unwrap(), "Linux");

    machine.revert().await.unwrap();
    assert_eq!(said(machine.as_ref(), "ls /mark").await, "");
    assert_eq!(ours().len(), 1);
    assert_ne!(ours(), first);

    docker(&["kill", &ours()[0]]);
    until(|| machine.state() != MachineState::Running).await;
    let MachineState::Ended { reason } = machine.state() else {
        panic!("{:?}", machine.state());
    };
    assert!(reason.contains("exit code 137"), "{reason}");
    until(|| heard.phases().last() == Some(&MachinePhase::Off)).await;
    machine.revert().await.unwrap();
    // A frozen one goes, too.
    machine.suspend().await.unwrap();
    machine.close().await.unwrap();
    assert!(ours().is_empty());
    docker(&["rmi", IMAGE]);
}
