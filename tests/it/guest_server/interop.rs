//! OSWorld's own controllers, from its package `desktop-env`, drive our server.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Witness;
use crate::desk::{Desk, has_desktops};
use crate::reference::fixtures;

/// Runs the controllers with what they are asked; `None` where references are switched off.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
fn controllers(test: &str, desk: &Desk, asked: &Value) -> Option<Value> {
    if std::env::var_os("ARPO_NO_REF").is_some_and(|value| value == "1") {
        eprintln!("skipped, ARPO_NO_REF=1: {test}");
        return None;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("ARPO_SIDECAR_PYTHON")
        .map_or_else(|| root.join(".venv-sidecar/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "{test} needs {}: `arpo tasks sidecar` makes it, ARPO_NO_REF=1 does without",
        python.display()
    );
    let (host, port) = desk.address.split_once(':').unwrap();
    let mut child = Command::new(python)
        .arg(fixtures().join("guest/interop.py"))
        .args([host, port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(asked.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{test}: the controllers failed, see above"
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn osworlds_controller_does_every_kind_of_action() {
    let test = "osworlds_controller_does_every_kind_of_action";
    if !has_desktops(test, &[]) {
        return;
    }
    let mut desk = Desk::start(&[]);
    let act =
        |kind: &str, parameters: Value| json!({"action_type": kind, "parameters": parameters});
    let (shift, ctrl) = ("ffe1", "ffe3");
    let click =
        |button: u8, at: &str| format!("button {button} down at {at}, button {button} up at {at}");
    let left = click(1, "30,40");
    let table: Vec<(Value, String)> = vec![
        (
            act("CLICK", json!({"x": 30, "y": 40})),
            format!("to 30,40, {left}"),
        ),
        (
            act("CLICK", json!({"button": "left", "num_clicks": 2})),
            format!("{left}, {left}"),
        ),
        (act("CLICK", json!({})), left.clone()),
        (
            act(
                "CLICK",
                json!({"button": "middle", "x": 30, "y": 40, "num_clicks": 1}),
            ),
            format!("to 30,40, {}", click(2, "30,40")),
        ),
        (
            act("RIGHT_CLICK", json!({"x": 31, "y": 40})),
            format!("to 31,40, {}", click(3, "31,40")),
        ),
        (
            act("DOUBLE_CLICK", json!({})),
            [click(1, "31,40"), click(1, "31,40")].join(", "),
        ),
        (
            act("MOUSE_DOWN", json!({"button": "left"})),
            "button 1 down at 31,40".to_owned(),
        ),
        (
            act("MOUSE_UP", json!({"button": "left"})),
            "button 1 up at 31,40".to_owned(),
        ),
        (
            act("SCROLL", json!({"dx": -1, "dy": 2})),
            [click(6, "31,40"), click(4, "31,40"), click(4, "31,40")].join(", "),
        ),
        (
            act("TYPING", json!({"text": "a'<é\n"})),
            "a down, a up, ' down, ' up, < down, < up, é down, é up, ff0d down, ff0d up".to_owned(),
        ),
        (
            act("PRESS", json!({"key": "backspace"})),
            "ff08 down, ff08 up".to_owned(),
        ),
        (
            act("KEY_DOWN", json!({"key": "ctrl"})),
            format!("{ctrl} down"),
        ),
        (act("KEY_UP", json!({"key": "ctrl"})), format!("{ctrl} up")),
        (
            act("HOTKEY", json!({"keys": ["shift", "f5"]})),
            format!("{shift} down, ffc2 down, ffc2 up, {shift} up"),
        ),
        (json!("WAIT"), String::new()),
    ];
    let actions: Vec<&Value> = table.iter().map(|(action, _)| action).collect();
    let witness = Witness::open(&mut desk);
    let mut told = None;
    let (witness, lines) = witness.during(|| {
        told = controllers(test, &desk, &json!({"actions": actions}));
    });
    if told.is_none() {
        return;
    }
    let expected: Vec<&str> = table.iter().map(|(_, lines)| lines.as_str()).collect();
    let expected: Vec<&str> = expected
        .into_iter()
        .filter(|lines| !lines.is_empty())
        .collect();
    assert_eq!(lines.join(", "), expected.join(", "));
    let slow = [
        act("MOVE_TO", json!({"x": 500, "y": 300})),
        act("DRAG_TO", json!({"x": 600, "y": 350})),
    ];
    let (_witness, lines) = witness.during(|| {
        controllers(test, &desk, &json!({"actions": slow}));
    });
    let down = lines
        .iter()
        .position(|line| line == "button 1 down at 500,300")
        .unwrap();
    assert!(down > 10 && lines.len() - down > 20, "{lines:?}");
    assert_eq!(lines[lines.len() - 1], "button 1 up at 600,350");
}

/// A step of every type that needs no internet, in the order that makes sense of them.
fn every_step(url: &str, path: impl Fn(&str) -> String) -> Value {
    let step = |kind: &str, parameters: Value| json!({"type": kind, "parameters": parameters});
    let window = |name: &str| json!({"window_name": name, "strict": false, "by_class": false});
    json!([
        step("sleep", json!({"seconds": 0.01})),
        step(
            "download",
            json!({"files": [{"url": url, "path": path("down.txt")}]})
        ),
        step(
            "upload_file",
            json!({"files": [{"path": path("uploaded.txt")}]})
        ),
        step("change_wallpaper", json!({"path": path("picture.png")})),
        step(
            "execute",
            json!({"command": "echo {SCREEN_WIDTH_HALF} {CLIENT_PASSWORD}; exit 3", "shell": "true", "stdout": "out.txt"})
        ),
        step("command", json!({"command": ["touch", "~/touched"]})),
        step("launch", json!({"command": "xterm -T Launched"})),
        step(
            "execute_with_verification",
            json!({
                "command": ["true"],
                "verification": {"window_exists": "launched", "command_success": "test -e ~/touched"},
                "max_wait_time": 60,
            })
        ),
        step("open", json!({"path": "mousepad"})),
        step("activate_window", window("mousepad")),
        step("launch", json!({"command": ["xterm", "-T", "Closing"]})),
        step(
            "execute_with_verification",
            json!({
                "command": ["true"],
                "verification": {"window_exists": "Closing"},
                "max_wait_time": 60,
            })
        ),
        step("close_window", window("Closing")),
    ])
}

#[test]
fn osworlds_controllers_set_up_look_and_record() {
    let test = "osworlds_controllers_set_up_look_and_record";
    if !has_desktops(
        test,
        &["xterm", "mousepad", "ffmpeg", "dbus-daemon", "gsettings"],
    ) {
        return;
    }
    let desk = Desk::start_session();
    let home = desk.home.path();
    for folder in ["Desktop", "tree", "tree/below"] {
        std::fs::create_dir(home.join(folder)).unwrap();
    }
    std::fs::write(home.join("tree/below/leaf"), "").unwrap();
    std::fs::write(home.join("picture.png"), "a picture").unwrap();
    let web = crate::loopback::serve(|_| {
        Some("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nfetched".into())
    });
    let path = |name: &str| home.join(name).display().to_string();
    let steps = every_step(&format!("http://{web}/a"), path);
    let asked = json!({"setup": steps, "home": home});
    let Some(told) = controllers(test, &desk, &asked) else {
        return;
    };
    let base64 = |text: &str| {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    assert_eq!(told["setup"], true);
    assert_eq!(told["kept"], "640 password\n");
    assert_eq!(std::fs::read(path("down.txt")).unwrap(), b"fetched");
    assert_eq!(told["file"], base64("local"));
    assert_eq!(told["wallpaper"], base64("a picture"));
    assert_eq!(told["platform"], "Linux");
    assert_eq!(told["screen_size"], json!({"width": 1280, "height": 720}));
    assert!(
        told["window_size"]["width"].as_u64().unwrap() > 100,
        "{told}"
    );
    assert_eq!(told["desktop_path"], path("Desktop"));
    let leaf = json!({"type": "file", "name": "leaf"});
    let below = json!({"type": "directory", "name": "below", "children": [leaf]});
    let tree = json!({"type": "directory", "name": "tree", "children": [below]});
    assert_eq!(told["tree"], tree);
    assert_eq!(
        told["terminal"],
        Value::Null,
        "xterm tells nobody what it shows"
    );
    assert_eq!(told["python"]["output"], "42\n");
    assert_eq!(told["bash"]["output"], "a\nb\n");
    assert_eq!(told["bash"]["returncode"], 3);
    assert!(
        told["screenshot"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo"),
        "a PNG"
    );
    assert!(
        told["recording"].as_u64().unwrap() > 1000,
        "{}",
        told["recording"]
    );
    check_tree(told["accessibility"].as_str().unwrap());
}

/// Whether the editor is told of, with what evaluators look for.
fn check_tree(xml: &str) {
    let tree = roxmltree::Document::parse(xml).unwrap();
    assert!(tree.root_element().has_tag_name("desktop-frame"));
    let ns = |what: &str| format!("https://accessibility.ubuntu.example.org/ns/{what}");
    let frame = tree
        .descendants()
        .find(|it| it.has_tag_name("frame"))
        .expect("the editor");
    assert!(
        frame.attribute("name").unwrap().contains("Mousepad"),
        "{frame:?}"
    );
    assert_eq!(frame.attribute((&*ns("state"), "showing")), Some("true"));
    let size = frame.attribute((&*ns("component"), "size")).unwrap();
    assert!(size.starts_with('(') && size.contains(", "), "{size}");
    let menu = tree
        .descendants()
        .find(|it| it.has_tag_name("menu") && it.attribute("name") == Some("File"));
    assert!(menu.is_some(), "its menus");
}
