//! Every route, by our client; tokens, sockets, limits.

use std::time::Duration;

use arpo::env::guest::{
    Child, Command, Entry, Guest, GuestError, GuestOptions, Patience, Verification,
};
use arpo::types::osworld::setup::WindowName;
use arpo::types::{Action, Point};
use serde_json::{Value, json};

use super::wait;
use crate::desk::{Desk, SCREEN, eventually, has_desktops, options, serve};

fn window(window_name: &str) -> WindowName {
    WindowName {
        window_name: window_name.to_owned(),
        strict: false,
        by_class: false,
    }
}

/// Asks by hand: status and answer.
fn post(address: &str, path: &str, payload: &Value) -> (u16, String) {
    try_post(address, path, payload).unwrap()
}

fn try_post(address: &str, path: &str, payload: &Value) -> Result<(u16, String), reqwest::Error> {
    wait(async {
        let client = reqwest::Client::new();
        let url = format!("http://{address}{path}");
        let answer = client.post(url).body(payload.to_string()).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    })
}

#[test]
fn programs_are_run_as_the_original_runs_them() {
    if !has_desktops("programs_are_run_as_the_original_runs_them", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    let shell = |script: &str| wait(guest.execute(&Command::shell(script))).unwrap();
    assert_eq!(shell("echo $DISPLAY").stdout.trim(), desk.screen.display);
    assert_eq!(
        shell("pwd; exit 7").stdout.trim(),
        desk.home.path().display().to_string()
    );
    assert_eq!(shell("kill -9 $$").returncode, -9);
    let ran = wait(guest.run_python("print('x'); raise SystemExit(3)")).unwrap();
    assert_eq!((ran.returncode, &*ran.stdout), (3, "x\n"));
    let long = format!("# {}\nprint(1)", "x".repeat(300_000));
    assert_eq!(wait(guest.run_python(&long)).unwrap().stdout, "1\n");
    let script = "echo a; echo b >&2; exit 4";
    let ran = wait(guest.run_bash_script(script, Duration::from_secs(60))).unwrap();
    assert_eq!(
        (ran.returncode, &*ran.stdout, &*ran.stderr),
        (4, "a\nb\n", "")
    );
    let late = wait(guest.run_bash_script("sleep 60", Duration::from_millis(200)));
    assert_eq!(late.unwrap_err().class(), arpo::types::ErrorClass::Timeout);
    let missing = wait(guest.execute(&Command::program(["no-such-program"])));
    let told = missing.unwrap_err().to_string();
    assert!(told.contains("cannot start \"no-such-program\""), "{told}");
    // What is no call of pyautogui is Python's, by whatever name it is there.
    let command = Command::program(["python", "-c", "import platform; print(platform.system())"]);
    assert_eq!(wait(guest.run(&command)).unwrap().stdout, "Linux\n");
    let patience = Patience {
        longest: Duration::from_secs(30),
        interval: Duration::from_millis(100),
    };
    let holds = |command: &str| Verification {
        window_exists: None,
        command_success: Some(command.to_owned()),
    };
    let until = |verification: &Verification, patience| {
        wait(guest.execute_until(&Command::shell("touch ~/a"), verification, patience))
    };
    assert_eq!(
        until(&holds("test -e ~/a"), patience).unwrap().returncode,
        0
    );
    let brief = Patience {
        longest: Duration::from_millis(300),
        ..patience
    };
    let failed = until(&holds("test -e ~/b"), brief).unwrap_err();
    assert!(
        matches!(failed, GuestError::Reported { status: 500, .. }),
        "{failed}"
    );
    wait(guest.launch(&Command::shell("sleep 0.1; echo done > ~/launched"))).unwrap();
    let path = desk.path("launched");
    eventually("launched program", || {
        std::fs::read(&path).ok().filter(|it| !it.is_empty())
    });
}

#[test]
fn files_go_both_ways() {
    if !has_desktops("files_go_both_ways", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let (from, back) = (desk.path("from.bin"), desk.path("back.bin"));
    std::fs::write(&from, &bytes).unwrap();
    wait(guest.upload(&from, "~/new/é folder/to.bin")).unwrap();
    assert_eq!(
        wait(guest.read_file("$HOME/new/é folder/to.bin")).unwrap(),
        Some(bytes.clone())
    );
    assert!(wait(guest.download("~/new/é folder/to.bin", &back)).unwrap());
    assert_eq!(std::fs::read(&back).unwrap(), bytes);
    assert_eq!(wait(guest.read_file("~/none")).unwrap(), None);
    let folder = wait(guest.read_file("~/new")).unwrap_err().to_string();
    assert!(folder.contains("is no file"), "{folder}");
    let Entry::Directory { name, children } = wait(guest.list_directory("~/new")).unwrap() else {
        panic!("a folder");
    };
    assert_eq!(name, "new");
    let [Child::Entry(Entry::Directory { name, children })] = &children[..] else {
        panic!("{children:?}");
    };
    assert_eq!((name.as_str(), children.len()), ("é folder", 1));
    assert!(wait(guest.list_directory("~/none")).is_err());
    assert!(wait(guest.desktop_path()).is_err());
    std::fs::create_dir(desk.path("Desktop")).unwrap();
    let path = desk.path("Desktop").display().to_string();
    assert_eq!(wait(guest.desktop_path()).unwrap(), path);
    let server = crate::loopback::serve(|request| {
        let found = request.path() == "/there";
        let head = if found { "200 OK" } else { "404 Not Found" };
        Some(format!("HTTP/1.1 {head}\r\nContent-Length: 5\r\n\r\nbytes").into())
    });
    wait(guest.download_file(&format!("http://{server}/there"), "~/fetched")).unwrap();
    assert_eq!(std::fs::read(desk.path("fetched")).unwrap(), b"bytes");
    assert!(wait(guest.download_file(&format!("http://{server}/none"), "~/none")).is_err());
    assert!(!desk.path("none").exists());
}

#[test]
fn windows_are_found_by_title_and_class() {
    if !has_desktops("windows_are_found_by_title_and_class", &["xterm"]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    for title in ["First", "Second"] {
        let command = ["xterm", "-T", title, "-geometry", "40x10"];
        wait(guest.launch(&Command::program(command))).unwrap();
        let verification = Verification {
            window_exists: Some(title.to_lowercase()),
            command_success: None,
        };
        let patience = Patience {
            longest: Duration::from_secs(30),
            interval: Duration::from_millis(100),
        };
        let nothing = Command::program(["true"]);
        wait(guest.execute_until(&nothing, &verification, patience)).unwrap();
    }
    let active = |title: &str| {
        wait(guest.activate_window(&window(title))).unwrap();
        // What is typed goes to the window in front.
        let content = format!("echo x > ~/{title}\n");
        wait(guest.act(&Action::Type { content })).unwrap();
        let path = desk.path(title);
        eventually("the shell's file", || path.exists().then_some(()));
    };
    active("First");
    active("Second");
    let size = wait(guest.window_size("XTerm")).unwrap().unwrap();
    assert!(size.width > 100 && size.height > 50, "{size:?}");
    assert_eq!(wait(guest.window_size("none")).unwrap(), None);
    wait(guest.close_window(&window("First"))).unwrap();
    let second = WindowName {
        by_class: true,
        ..window("xterm.xterm")
    };
    wait(guest.close_window(&second)).unwrap();
    assert_eq!(wait(guest.window_size("xterm")).unwrap(), None);
    wait(guest.close_window(&second)).unwrap();
    wait(guest.activate_window(&second)).unwrap();
}

#[test]
fn a_window_that_is_still_coming_is_waited_for() {
    if !has_desktops("a_window_that_is_still_coming_is_waited_for", &["xterm"]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    let slow = "sleep 1; exec xterm -T Late -geometry 40x10";
    wait(guest.launch(&Command::shell(slow))).unwrap();
    wait(guest.activate_window(&window("Late"))).unwrap();
    let content = "echo x > ~/late\n".to_owned();
    wait(guest.act(&Action::Type { content })).unwrap();
    let path = desk.path("late");
    eventually("the shell's file", || path.exists().then_some(()));
}

#[test]
fn a_program_is_opened_when_its_window_is_there() {
    if !has_desktops("a_program_is_opened_when_its_window_is_there", &["xterm"]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    wait(guest.open_file("xterm", Duration::from_secs(120))).unwrap();
    assert!(wait(guest.window_size("xterm")).unwrap().is_some());
    let missing = wait(guest.open_file("~/none.docx", Duration::from_secs(60))).unwrap_err();
    assert!(
        matches!(missing, GuestError::Reported { status: 404, .. }),
        "{missing}"
    );
}

#[test]
fn the_screen_is_told() {
    if !has_desktops("the_screen_is_told", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    assert_eq!(wait(guest.screen_size()).unwrap(), SCREEN);
    assert_eq!(wait(guest.platform()).unwrap(), "Linux");
    let at = Point { x: 12.0, y: 34.0 };
    wait(guest.act(&Action::Hover { at })).unwrap();
    assert_eq!(wait(guest.cursor_position()).unwrap(), at);
    let health = wait(guest.health());
    assert_eq!(health.broken(), None, "{health:?}");
    assert!(!guest.needs_restart());
}

#[test]
fn only_who_has_the_token_is_answered() {
    if !has_desktops("only_who_has_the_token_is_answered", &[]) {
        return;
    }
    let desk = Desk::start(&["--token", "open sesame"]);
    for (token, is_answered) in [
        (Some("open sesame"), true),
        (Some("open"), false),
        (None, false),
    ] {
        let guest = Guest::with_token(&desk.address, token, options()).unwrap();
        assert_eq!(wait(guest.platform()).is_ok(), is_answered, "{token:?}");
        let at = Point { x: 1.0, y: 1.0 };
        assert_eq!(
            wait(guest.act(&Action::Hover { at })).is_ok(),
            is_answered,
            "{token:?}"
        );
    }
    let said = "can be reached from other machines";
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_arpo"))
        .args(["guest", "--display", ":0", "--listen", "0.0.0.0:0"])
        .output();
    let output = output.unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains(said),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_port_is_reached_by_who_has_the_token() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    if !has_desktops("a_port_is_reached_by_who_has_the_token", &[]) {
        return;
    }
    let desk = Desk::start(&["--token", "open sesame"]);
    wait(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Says backwards what it hears, and hangs up.
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = [0; 3];
            stream.read_exact(&mut heard).await.unwrap();
            heard.reverse();
            stream.write_all(&heard).await.unwrap();
        });
        for token in [None, Some("open barley")] {
            let guest = Guest::with_token(&desk.address, token, options()).unwrap();
            let error = guest.connect_to(port).await.err().unwrap();
            assert!(
                matches!(error, GuestError::Reported { status: 401, .. }),
                "{error}"
            );
        }
        let guest = Guest::with_token(&desk.address, Some("open sesame"), options()).unwrap();
        let mut connection = guest.connect_to(port).await.unwrap();
        connection.write_all(b"abc").await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "cba");
        serving.await.unwrap();
        // Nobody listens there any more.
        let error = guest.connect_to(port).await.err().unwrap();
        assert!(
            matches!(error, GuestError::Reported { status: 502, .. }),
            "{error}"
        );
        // Asked without the wish to change what is spoken.
        let url = format!("http://{}/arpo/connect/{port}", desk.address);
        let asking = reqwest::Client::new().get(url).bearer_auth("open sesame");
        assert_eq!(asking.send().await.unwrap().status().as_u16(), 426);
    });
}

#[test]
fn a_token_is_no_programs_business() {
    if !has_desktops("a_token_is_no_programs_business", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let folder = desk.home.path();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_arpo"));
    let socket = format!("unix:{}", folder.join("other.sock").display());
    command.args([
        "guest",
        "--display",
        &desk.screen.display,
        "--listen",
        &socket,
    ]);
    command.env("ARPO_GUEST_TOKEN", "secret");
    let _server = crate::desk::Running(command.spawn().unwrap());
    let guest = Guest::with_token(&socket, Some("secret"), options()).unwrap();
    eventually("server", || wait(guest.platform()).ok());
    let env = wait(guest.run(&Command::program(["env"]))).unwrap().stdout;
    assert!(env.contains("DISPLAY=") && !env.contains("secret"), "{env}");
}

#[test]
fn a_socket_serves_and_leads_to_ports() {
    if !has_desktops("a_socket_serves_and_leads_to_ports", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let web = crate::loopback::serve(|request| {
        let body = format!("{} {}", request.method(), request.path());
        Some(
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .into(),
        )
    });
    let port = web.rsplit(':').next().unwrap();
    let socket = desk.path("guest.sock");
    // One that nobody listens at is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let address = format!("unix:{}", socket.display());
    let arguments = ["--listen", &address, "--relay", port];
    let (mut server, told) = serve(&desk.screen.display, desk.home.path(), &arguments);
    assert_eq!(told, address);
    let guest = Guest::new(&address, options()).unwrap();
    assert_eq!(wait(guest.screenshot()).unwrap().size(), SCREEN);
    assert_eq!(wait(guest.health()).broken(), None);
    let relay = desk.path(&format!("{port}.sock"));
    let answer = wait(async {
        let client = reqwest::Client::builder()
            .unix_socket(relay.as_path())
            .build()
            .unwrap();
        client
            .get("http://127.0.0.1/x")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    });
    assert_eq!(answer, "GET /x");
    let pid = rustix::process::Pid::from_raw(server.0.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.0.wait().unwrap().success());
    assert!(!socket.exists() && !relay.exists());
    let brief = GuestOptions {
        tries: 1,
        ..options()
    };
    let guest = Guest::new(&address, brief).unwrap();
    let gone = wait(guest.platform()).unwrap_err();
    assert!(matches!(gone, GuestError::Unreachable { .. }), "{gone}");
}

#[test]
fn what_cannot_be_asked_is_refused_in_json() {
    if !has_desktops("what_cannot_be_asked_is_refused_in_json", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    // It is not read to its end: the refusal may overtake what is still being sent, or cut it off.
    let huge = json!({"command": "x".repeat(20 << 20), "shell": true});
    if let Ok((came, text)) = try_post(&desk.address, "/execute", &huge) {
        assert_eq!(came, 413, "{text}");
    }
    let table = [
        ("/no/such/route", json!({}), 404, "no such route"),
        ("/execute", json!({"command": 5}), 400, "the payload"),
        (
            "/execute",
            json!({"command": []}),
            500,
            "the command is empty",
        ),
        ("/run_python", json!({}), 400, "Code not supplied!"),
        ("/arpo/act", json!({"kind": "jump"}), 400, "the payload"),
        ("/setup/activate_window", json!({}), 400, "window_name"),
        (
            "/setup/change_wallpaper",
            json!({"path": "/none"}),
            404,
            "File not found: /none",
        ),
        (
            "/setup/open_file",
            json!({"path": "/none"}),
            404,
            "not found: /none",
        ),
    ];
    for (path, payload, status, told) in table {
        let (came, text) = post(&desk.address, path, &payload);
        assert_eq!(came, status, "{path}: {text}");
        assert!(text.contains(told), "{path}: {text}");
    }
}
