//! Faults of task files, placeholders, and the parts that are easy to read wrongly.

use serde_json::{Value, json};

use super::getter::FileToGet;
use super::*;
use crate::types::ScreenSize;

/// A task file with one of most things.
fn sample() -> Value {
    json!({
        "id": "x", "snapshot": "chrome", "instruction": "Do it", "source": "", "trajectory": "t/",
        "related_apps": ["chrome"], "proxy": false, "fixed_ip": false,
        "possibility_of_env_change": "low",
        "config": [
            {"type": "download", "parameters": {"files": [
                {"url": "https://h/a", "path": "/home/user/a"},
            ]}},
            {"type": "execute", "parameters": {"command": ["echo", "{SCREEN_WIDTH_HALF}"]}},
            {"type": "sleep", "parameters": {"seconds": 2}},
        ],
        "evaluator": {
            "func": ["compare_table", "exact_match"],
            "conj": "or",
            "result": [
                {"type": "vm_file", "path": "/home/user/a", "dest": "a"},
                {"type": "vm_command_line", "command": "date", "shell": "true"},
            ],
            "expected": [
                {"type": "cloud_file", "path": ["https://h/b", "https://h/c"], "dest": ["b", "c"],
                 "multi": true, "gives": [1, 0, 1]},
                {"type": "rule", "rules": {"expected": "x"}},
            ],
            "options": [{"rules": []}, null],
            "postconfig": [{"type": "activate_window", "parameters": {"window_name": "w"}}],
        },
    })
}

fn read(json: &Value) -> Result<(Task, OsworldTask), TaskFault> {
    read_task(&json.to_string())
}

#[test]
fn every_part_is_typed() {
    let (_, typed) = read(&sample()).unwrap();
    let Judge::Checks { join, checks } = &typed.judge else {
        panic!("{:?}", typed.judge)
    };
    assert_eq!(*join, Join::Or);
    assert_eq!(typed.metrics(), ["compare_table", "exact_match"]);
    let Some(Getter::CloudFile(files)) = &checks[0].expected else {
        panic!("{:?}", checks[0].expected)
    };
    let file = |path: &str, dest: &str| FileToGet {
        path: path.into(),
        dest: dest.to_owned().try_into().unwrap(),
    };
    assert_eq!(
        files.files,
        [file("https://h/b", "b"), file("https://h/c", "c")]
    );
    assert_eq!(files.gives, [0, 1], "OSWorld makes a set of it");
    let Getter::VmCommandLine(line) = &checks[1].result else {
        panic!("{:?}", checks[1].result)
    };
    assert!(line.shell, "the text \"true\" is true, as in Python");
    assert!(checks[1].options.is_empty(), "null is no options");
    assert_eq!(typed.setup[2], Setup::Sleep { seconds: 2.0 });
}

#[test]
fn what_is_absent_is_what_osworld_takes_for_it() {
    let mut json = sample();
    json.as_object_mut().unwrap().remove("config");
    json.as_object_mut().unwrap().remove("proxy");
    json["evaluator"] = json!({
        "func": "compare_table",
        "result": {"type": "active_url_from_accessTree"},
        "expected": {},
        "options": {},
    });
    let (_, typed) = read(&json).unwrap();
    assert!(typed.setup.is_empty() && !typed.proxy);
    let check = &typed.checks()[0];
    assert_eq!(check.expected, None);
    let Getter::ActiveUrl(prefix) = &check.result else {
        panic!("{:?}", check.result)
    };
    assert_eq!(prefix.goto_prefix, "https://");
}

/// Sets `pointer` to `value` in the sample and checks where the fault is and what it says.
#[track_caller]
fn check_fault(pointer: &str, value: Value, key: &str, phrase: &str) {
    let mut json = sample();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match json.pointer_mut(parent).unwrap() {
        Value::Object(object) if value == Value::Null => drop(object.remove(name)),
        Value::Object(object) => drop(object.insert(name.to_owned(), value)),
        Value::Array(array) => array[name.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer} is in {other}"),
    }
    let fault = read(&json).expect_err(pointer);
    assert_eq!(fault.key, key, "{fault}");
    assert!(fault.reason.contains(phrase), "{fault}");
}

/// Rows of pointer, value (null removes it), key and phrase; see `check_fault`.
#[track_caller]
fn check_faults(rows: &Value) {
    for row in rows.as_array().unwrap() {
        let text = |i: usize| row[i].as_str().unwrap();
        check_fault(text(0), row[1].clone(), text(2), text(3));
    }
}

#[test]
fn faults_of_task_files_name_their_key() {
    check_faults(&json!([
        ["/id", null, "id", "missing field"],
        ["/instruction", null, "instruction", "missing field"],
        ["/evaluator", null, "evaluator", "missing field"],
        ["/instruction", 3, "instruction", "expected a string"],
        ["/prxy", true, "prxy", "the nearest one is proxy"],
        ["/confg", [], "confg", "the nearest one is config"],
        ["/proxy", "yes", "proxy", "neither true nor false"],
        ["/config", {}, "config", "expected a sequence"],
    ]));
}

#[test]
fn faults_of_steps_name_their_key() {
    check_faults(&json!([
        ["/config/0", {"parameters": {}}, "config[0].type", "missing field"],
        ["/config/0/type", "downlaod", "config[0].type", "the nearest name is \"download\""],
        ["/config/0/type", "tidy_desktop", "config[0].type", "no set-up type"],
        ["/config/0/parameters/files/0/url", null, "config[0].parameters.files[0].url", "missing"],
        ["/config/0/parameters/files/0/urll", "x", "config[0].parameters.files[0].urll", "unknown"],
        ["/config/0/parameters/file", [], "config[0].parameters.file", "unknown field"],
        ["/config/1/parameters/shell", "yes", "config[1].parameters.shell", "neither true nor"],
        ["/config/1/parameters/command", "echo {SCREEN_HIGHT}", "config[1].parameters.command", "{SCREEN_HIGHT}"],
        ["/config/2/parameters/seconds", "2", "config[2].parameters.seconds", "expected f64"],
        ["/config/2/parameters", null, "config[2].parameters.seconds", "missing field"],
        ["/config/0", {"type": "googledrive", "parameters": {"settings_file": "s", "operation": ["delete", "upload"], "args": [{}]}}, "config[0].parameters.args", "1 for 2"],
        ["/config/1/parameters/stdout", "a/b", "config[1].parameters.stdout", "no file's name"],
        ["/config/1/parameters/command", [], "config[1].parameters.command", "name a program"],
        ["/config/2/parameters/seconds", -1, "config[2].parameters.seconds", "within a day"],
        ["/evaluator/postconfig/0/type", "activate", "evaluator.postconfig[0].type", "\"activate_window\""],
        ["/evaluator/postconfig/0/parameters/window", "x", "evaluator.postconfig[0].parameters.window", "unknown field"],
    ]));
}

#[test]
fn faults_of_evaluators_name_their_key() {
    check_faults(&json!([
        ["/evaluator/fnuc", "x", "evaluator.fnuc", "the nearest one is evaluator.func"],
        ["/evaluator/func", null, "evaluator.func", "missing field"],
        ["/evaluator/func", 3, "evaluator.func", "neither one value"],
        ["/evaluator/func", [], "evaluator.func", "an empty list"],
        ["/evaluator/func/1", "exactmatch", "evaluator.func[1]", "the nearest name is \"exact_match\""],
        ["/evaluator/func/1", "infeasible", "evaluator.func", "stands alone"],
        ["/evaluator/func", "exact_match", "evaluator.result", "a list, but \"func\" is one metric"],
        ["/evaluator/conj", "xor", "evaluator.conj", "neither \"and\" nor \"or\""],
        ["/evaluator/result", null, "evaluator.result[0]", "no getter"],
        ["/evaluator/expected", [{}], "evaluator.expected", "1 entries for 2 metrics"],
        ["/evaluator/expected", {"type": "rule", "rules": 1}, "evaluator.expected", "make it a list"],
        ["/evaluator/options/0/rule", [], "evaluator.options[0].rule", "the nearest one is \"rules\""],
        ["/evaluator/options/1", {"x": 1}, "evaluator.options[1].x", "it has none"],
        ["/evaluator/options/0", [], "evaluator.options[0]", "not an object"],
    ]));
}

#[test]
fn faults_of_getters_name_their_key() {
    check_faults(&json!([
        ["/evaluator/result/1", {}, "evaluator.result[1]", "no getter"],
        ["/evaluator/result/1", {"command": "x"}, "evaluator.result[1]", "no \"type\""],
        ["/evaluator/result/0/type", "vm_fle", "evaluator.result[0].type", "is \"vm_file\""],
        ["/evaluator/result/0/dest", null, "evaluator.result[0].dest", "missing field"],
        ["/evaluator/result/0/dst", "x", "evaluator.result[0].dst", "unknown field"],
        ["/evaluator/result/0/path", ["a"], "evaluator.result[0]", "lists where \"multi\""],
        ["/evaluator/result/0", {"type": "bookmarks", "dest": "x"}, "evaluator.result[0].dest", "unknown field"],
        ["/evaluator/expected/0/gives", [2], "evaluator.expected[0]", "by index, of which there are 2"],
        ["/evaluator/expected/0/dest", ["b"], "evaluator.expected[0]", "2 of \"path\" and 1"],
        ["/evaluator/expected/1", null, "evaluator.expected[1]", "exact_match: no getter"],
        ["/evaluator/result/0/dest", "../a", "evaluator.result[0]", "no file's name"],
        ["/evaluator/result/1", {"type": "cache_file", "path": "a/b"}, "evaluator.result[1].path", "no file's name"],
        ["/evaluator/result/1", {"type": "googledrive_file", "settings_file": "s", "dest": "a"}, "evaluator.result[1]", "give one of \"query\""],
        ["/evaluator/result/1", {"type": "googledrive_file", "settings_file": "s", "dest": ["a"], "path": ["a"]}, "evaluator.result[1]", "for lists a list of as many"],
        ["/evaluator/result/1", {"type": "active_tab_html_parse", "category": "clas"}, "evaluator.result[1].category", "unknown variant `clas`"],
    ]));
}

#[test]
fn broken_json_is_told_with_its_place() {
    for (text, phrase) in [("{\"id\": ", "line 1"), ("[]", "not a JSON object")] {
        let fault = read_task(text).unwrap_err();
        assert!(
            fault.key == "file" && fault.reason.contains(phrase),
            "{fault}"
        );
    }
}

#[test]
fn names_are_sorted_and_single() {
    let metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    for names in [&SETUP_NAMES[..], &GETTER_NAMES, &metrics] {
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
}

#[test]
fn placeholders_are_filled_in_once() {
    let values = PlaceholderValues {
        client_password: "{SCREEN_WIDTH}".into(),
        screen: ScreenSize {
            width: 1921,
            height: 1080,
        },
    };
    let table = [
        (
            "echo {CLIENT_PASSWORD} | sudo -S x",
            "echo {SCREEN_WIDTH} | sudo -S x",
        ),
        (
            "click({SCREEN_WIDTH_HALF}, {SCREEN_HEIGHT_HALF})",
            "click(960, 540)",
        ),
        ("{SCREEN_WIDTH}x{SCREEN_HEIGHT}", "1921x1080"),
        (
            "f'{threshold} {img.size}' ${HOME} {}",
            "f'{threshold} {img.size}' ${HOME} {}",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(resolve_placeholders(text, &values).as_deref(), Ok(expected));
    }
    let error = resolve_placeholders("{CLIENT_PASWORD}", &values).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("{CLIENT_PASWORD}; there are CLIENT_PASSWORD")
    );
}

#[test]
fn use_of_the_web_is_told_from_use_of_the_desktop() {
    let table = [
        (
            "/config/1/parameters/command",
            json!(["pip", "install", "x"]),
            true,
        ),
        (
            "/config/1/parameters/command",
            json!("echo 1 | sudo -S apt-get -y install x"),
            true,
        ),
        (
            "/config/1/parameters/command",
            json!("wget https://h/a"),
            true,
        ),
        (
            "/config/1/parameters/command",
            json!("ls ~/.cache/pip"),
            false,
        ),
        (
            "/config/1/parameters/command",
            json!("curl_output=1"),
            false,
        ),
        (
            "/config/1/parameters/command",
            json!("xdg-open http://localhost:8080/x"),
            false,
        ),
        ("/instruction", json!("Read https://example.org/a"), true),
        ("/instruction", json!("Open http://127.0.0.1/a"), false),
        ("/proxy", json!(true), true),
        (
            "/evaluator/result/1",
            json!({"type": "page_info", "url": "https://h"}),
            true,
        ),
        (
            "/evaluator/result/1",
            json!({"type": "active_url_from_accessTree", "goto_prefix": ""}),
            false,
        ),
    ];
    for (pointer, value, uses) in table {
        let mut json = sample();
        *json.pointer_mut(pointer).unwrap() = value.clone();
        let (task, typed) = read(&json).unwrap();
        let needs = TaskNeeds::of(&task, &typed);
        assert_eq!(
            !needs.internet.is_empty(),
            uses,
            "{pointer} {value}: {needs:?}"
        );
    }
}
