//! What is sent for each route and how its answer is read.

use std::time::Duration;

use arpo::env::guest::{Command, Patience, Verification};
use arpo::types::Action;
use serde_json::{Value, json};

use super::{Question, Reply, Server, block_on, of_json, output, question, text, window};

/// Asks, and holds what was sent and what came against this: `METHOD PATH BODY`, the answer.
#[track_caller]
fn exchange(ask: Question, reply: Reply, sent: &str, answer: &str) {
    let server = Server::start(vec![reply]);
    let guest = server.guest();
    assert_eq!(block_on(ask(&guest)).unwrap(), answer, "{sent}");
    let seen = server.seen.lock().unwrap();
    let request = &seen[0];
    let body = String::from_utf8_lossy(&request.body);
    let line = format!("{} {} {body}", request.method(), request.path());
    assert_eq!(line.trim_end(), sent);
    if !body.is_empty() {
        let mime = request.header("content-type");
        let is_json = serde_json::from_str::<Value>(&body).is_ok();
        let expected = if is_json {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        };
        assert_eq!(mime, expected);
    }
}

#[test]
fn every_route_is_asked_as_the_original_wants() {
    let file = |bytes: &[u8]| Reply::Whole(200, "application/octet-stream", bytes.to_vec());
    exchange(
        question!(guest => guest.platform()),
        text("Linux"),
        "GET /platform",
        "\"Linux\"",
    );
    exchange(
        question!(guest => guest.cursor_position()),
        of_json(200, &json!([960, 540])),
        "GET /cursor_position",
        "Point { x: 960.0, y: 540.0 }",
    );
    exchange(
        question!(guest => guest.screen_size()),
        of_json(200, &json!({"width": 1920, "height": 1080})),
        "POST /screen_size",
        "ScreenSize { width: 1920, height: 1080 }",
    );
    exchange(
        question!(guest => guest.window_size("gnome terminal&x")),
        of_json(200, &json!({"width": 800, "height": 600})),
        "POST /window_size app_class_name=gnome+terminal%26x",
        "Some(ScreenSize { width: 800, height: 600 })",
    );
    exchange(
        question!(guest => guest.accessibility_tree()),
        of_json(200, &json!({"AT": "<desktop-frame/>"})),
        "GET /accessibility",
        "\"<desktop-frame/>\"",
    );
    exchange(
        question!(guest => guest.terminal_output()),
        of_json(200, &json!({"output": "$ ls", "status": "success"})),
        "GET /terminal",
        "Some(\"$ ls\")",
    );
    exchange(
        question!(guest => guest.wallpaper()),
        file(b"x"),
        "POST /wallpaper",
        "Some([120])",
    );
    exchange(
        question!(guest => guest.change_wallpaper("~/a.png")),
        text("Wallpaper changed successfully"),
        r#"POST /setup/change_wallpaper {"path":"~/a.png"}"#,
        "()",
    );
    exchange(
        question!(guest => guest.read_file("/tmp/ä b")),
        file(b"hi"),
        "POST /file file_path=%2Ftmp%2F%C3%A4+b",
        "Some([104, 105])",
    );
    exchange(
        question!(guest => guest.download_file("http://x/a", "/tmp/a")),
        text("File downloaded successfully: 2 bytes"),
        r#"POST /setup/download_file {"url":"http://x/a","path":"/tmp/a"}"#,
        "()",
    );
    exchange(
        question!(guest => guest.desktop_path()),
        of_json(200, &json!({"desktop_path": "/home/user/Desktop"})),
        "POST /desktop_path",
        "\"/home/user/Desktop\"",
    );
    exchange(
        question!(guest => guest.open_file("a.docx", Duration::from_secs(60))),
        text("File opened and window activated successfully"),
        r#"POST /setup/open_file {"path":"a.docx"}"#,
        "()",
    );
    for (ask, verb) in [
        (
            question!(guest => guest.activate_window(&window())) as Question,
            "activate",
        ),
        (question!(guest => guest.close_window(&window())), "close"),
    ] {
        let json = r#"{"window_name":"Files","strict":true,"by_class":false}"#;
        exchange(
            ask,
            text("done"),
            &format!("POST /setup/{verb}_window {json}"),
            "()",
        );
    }
    exchange(
        question!(guest => guest.start_recording()),
        of_json(200, &json!({"status": "success", "message": "Started"})),
        "POST /start_recording",
        "()",
    );
}

#[test]
fn programs_are_sent_as_lists() {
    let ran = "Output { returncode: 0, stdout: \"x\", stderr: \"\" }";
    exchange(
        question!(guest => guest.execute(&Command::program(["ls", "a b; c"]))),
        output(0, "x", ""),
        r#"POST /execute {"command":["ls","a b; c"],"shell":false}"#,
        ran,
    );
    exchange(
        question!(guest => guest.execute(&Command::shell("a && b"))),
        output(0, "x", ""),
        r#"POST /execute {"command":["a && b"],"shell":true}"#,
        ran,
    );
    exchange(
        question!(guest => guest.execute(&Command::Shell {
            script: "echo \"$1\"".to_owned(),
            arguments: vec!["$(id)".to_owned()],
        })),
        output(0, "x", ""),
        r#"POST /execute {"command":["echo \"$1\"","sh","$(id)"],"shell":true}"#,
        ran,
    );
    exchange(
        question!(guest => guest.launch(&Command::program(["google-chrome", "--x=1"]))),
        text("google-chrome --x=1 launched successfully"),
        r#"POST /setup/launch {"command":["google-chrome","--x=1"],"shell":false}"#,
        "()",
    );
    exchange(
        question!(guest => guest.execute_until(
            &Command::program(["x"]),
            &Verification {
                window_exists: Some("Files".to_owned()),
                command_success: None,
            },
            Patience { longest: Duration::from_secs(10), interval: Duration::from_millis(500) },
        )),
        of_json(
            200,
            &json!({"status": "success", "output": "x", "error": "", "returncode": 0,
            "verification": "passed", "wait_time": 0.5}),
        ),
        concat!(
            r#"POST /execute_with_verification {"command":["x"],"shell":false,"#,
            r#""verification":{"window_exists":"Files"},"max_wait_time":10.0,"check_interval":0.5}"#
        ),
        ran,
    );
    exchange(
        question!(guest => guest.run_python("print('x')")),
        of_json(
            200,
            &json!({"status": "success", "message": "x", "need_more": false,
            "output": "x", "error": null, "return_code": 0}),
        ),
        r#"POST /run_python {"code":"print('x')"}"#,
        ran,
    );
    exchange(
        question!(guest => guest.run_bash_script("echo x", Duration::from_secs(9))),
        output(0, "x", ""),
        r#"POST /run_bash_script {"script":"echo x","timeout":9.0}"#,
        ran,
    );
    exchange(
        question!(guest => guest.act(&Action::Press { key: "<".to_owned() })),
        output(0, "", ""),
        concat!(
            r#"POST /execute {"command":["python","-c","import pyautogui\npyautogui.FAILSAFE = False\n"#,
            r#"pyautogui.hotkey('shift', ',')\n"],"shell":false}"#
        ),
        "()",
    );
}
