//! OSWorld's tasks as they come with arpo: all load, their parts are as many as counted otherwise,
//! sets, and the `arpo tasks` commands that need no network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arpo::tasks::{Library, TaskFile};
use arpo::types::SetupStep;
use arpo::types::osworld::{FileName, InternetUse, Judge, Setup};
use serde_json::{Value, json};

fn shipped() -> Library {
    Library::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/osworld")).unwrap()
}

#[test]
fn all_load() {
    let library = shipped();
    assert!(library.faults().is_empty(), "{:?}", library.faults());
    let mut domains: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for file in library.files() {
        let count = domains.entry(file.task.domain()).or_default();
        count[0] += 1;
        count[1] += usize::from(file.typed.judge == Judge::Infeasible);
    }
    // All and infeasible, counted with Python over the same files.
    let expected = [
        ("chrome", [46, 3]),
        ("gimp", [26, 10]),
        ("libreoffice_calc", [47, 1]),
        ("libreoffice_impress", [47, 0]),
        ("libreoffice_writer", [23, 1]),
        ("multi_apps", [101, 1]),
        ("os", [24, 5]),
        ("thunderbird", [15, 1]),
        ("vlc", [17, 2]),
        ("vs_code", [23, 5]),
    ];
    assert_eq!(domains, BTreeMap::from(expected));
    let proxy = library.files().iter().filter(|file| file.typed.proxy);
    assert_eq!(proxy.count(), 52);
}

/// Uses and tasks of each name, by what `names` finds in a task.
fn counted<'a>(
    library: &'a Library,
    names: impl Fn(&'a TaskFile) -> Vec<&'static str>,
) -> BTreeMap<&'static str, [usize; 2]> {
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for file in library.files() {
        let names = names(file);
        for name in &names {
            counts.entry(name).or_default()[0] += 1;
        }
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            counts.entry(name).or_default()[1] += 1;
        }
    }
    counts
}

#[test]
fn parts_are_as_many_as_counted_otherwise() {
    let library = shipped();
    let steps = |steps: &[Setup]| steps.iter().map(Setup::name).collect();
    let config = counted(&library, |file| steps(&file.typed.setup));
    let postconfig = counted(&library, |file| steps(&file.typed.postconfig));
    let results = counted(&library, |file| {
        file.typed
            .checks()
            .iter()
            .map(|check| check.result.name())
            .collect()
    });
    let expected = counted(&library, |file| {
        let checks = file.typed.checks().iter();
        checks
            .filter_map(|check| Some(check.expected.as_ref()?.name()))
            .collect()
    });
    let metrics = counted(&library, |file| file.typed.metrics());
    let of = |counts: &BTreeMap<&str, [usize; 2]>, name: &str| {
        counts.get(name).copied().unwrap_or_default()
    };
    let mut seen = BTreeSet::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/osworld/counts.txt");
    let text = fs::read_to_string(path).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<usize> = words[2..]
            .iter()
            .map(|word| word.parse().unwrap())
            .collect();
        let name = words[1];
        let found = match words[0] {
            "setup" => [of(&config, name), of(&postconfig, name)].concat(),
            "getter" => vec![of(&results, name)[1], of(&expected, name)[1]],
            "metric" => vec![of(&metrics, name)[1], of(&metrics, name)[0]],
            other => panic!("{other}"),
        };
        assert_eq!(found, numbers, "{line}");
        seen.insert((words[0], name));
    }
    let named = |kind: &'static str, counts: &BTreeMap<&'static str, [usize; 2]>| {
        counts
            .keys()
            .map(|name| (kind, *name))
            .collect::<BTreeSet<_>>()
    };
    let mut all = named("setup", &config);
    all.append(&mut named("setup", &postconfig));
    all.append(&mut named("getter", &results));
    all.append(&mut named("getter", &expected));
    all.append(&mut named("metric", &metrics));
    assert_eq!(all, seen);
}

#[test]
fn a_file_read_and_written_says_the_same() {
    for file in shipped().files() {
        let mut original: Value = serde_json::from_str(&file.text).unwrap();
        let mut written = serde_json::to_value(file.task.as_ref()).unwrap();
        // An absent list and an empty one are the same to OSWorld and to us.
        for json in [&mut original, &mut written] {
            drop_empty(json, "config");
            drop_empty(&mut json["evaluator"], "postconfig");
        }
        assert_eq!(original, written, "{}", file.path.display());
    }
}

fn drop_empty(json: &mut Value, key: &str) {
    if json.get(key) == Some(&json!([])) {
        json.as_object_mut().unwrap().remove(key);
    }
}

#[test]
fn typed_steps_keep_all_that_the_file_says() {
    // What is typed is not written back, so this looks at a few parts beside the file's own.
    let library = shipped();
    let mut commands = 0;
    for file in library.files() {
        let pairs = file.typed.setup.iter().zip(&file.task.config);
        for (setup, written) in pairs {
            commands += usize::from(says_the_same(setup, written));
        }
    }
    assert_eq!(
        commands,
        154 + 29 + 274 + 14,
        "execute, command, launch, sleep"
    );
}

#[track_caller]
fn says_the_same(setup: &Setup, written: &SetupStep) -> bool {
    let parameter = |name: &str| &written.parameters[name];
    match setup {
        Setup::Execute(execute) | Setup::Command(execute) => {
            assert_eq!(json!(execute.command), *parameter("command"));
            let stdout = written.parameters.get("stdout").and_then(Value::as_str);
            assert_eq!(execute.stdout.as_ref().map(FileName::as_str), stdout);
        }
        Setup::Launch { command, .. } => assert_eq!(json!(command), *parameter("command")),
        Setup::Sleep { seconds } => assert_eq!(Some(*seconds), parameter("seconds").as_f64()),
        _ => return false,
    }
    true
}

#[test]
fn needs_are_as_many_as_counted_otherwise() {
    let library = shipped();
    let count = |set: &str| library.set(set).unwrap().files.len();
    assert_eq!(count("google"), 8);
    assert_eq!(count("all - google"), count("test_nogdrive"));
    // 660 in downloads and getters, and one that a set-up step puts on Google Drive, counted with
    // Python over the same files; and the empty history, which OSWorld's controller names.
    assert_eq!(library.set("all").unwrap().urls().len(), 662);
    // Counted with Python over the same files, by the rules of `TaskNeeds`.
    let uses = [
        (InternetUse::Proxy, 52),
        (InternetUse::Tabs, 53),
        (InternetUse::Commands, 11),
        (InternetUse::Pages, 41),
        (InternetUse::Google, 8),
        (InternetUse::Instruction, 7),
    ];
    for (way, expected) in uses {
        let using = library.files().iter();
        let found = using.filter(|file| file.needs.internet.contains(&way));
        assert_eq!(found.count(), expected, "{way:?}");
    }
    assert_eq!(count("internet"), 78);
}

#[test]
fn arpo_s_lists_are_what_they_are_said_to_be() {
    let library = shipped();
    let ids = |set: &str| -> BTreeSet<String> {
        let set = library.set(set).unwrap();
        set.files.iter().map(|file| file.id().to_owned()).collect()
    };
    let (all, id, ood) = (ids("arpo_128"), ids("arpo_32"), ids("arpo_96"));
    assert_eq!((all.len(), id.len(), ood.len()), (128, 32, 96));
    assert!(id.is_disjoint(&ood));
    assert_eq!(id.union(&ood).cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(ids("arpo_32 & infeasible").len(), 0);
    // 26 at the time of ARPO; vlc/5ac2891a became feasible since.
    assert_eq!(ids("arpo_96 & infeasible").len(), 25);
    assert_eq!(ids("test_all"), ids("all"));
    assert_eq!(
        (ids("test_small").len(), ids("test_nogdrive").len()),
        (39, 361)
    );
    assert_eq!(
        library.list_names(),
        [
            "arpo_128",
            "arpo_32",
            "arpo_96",
            "test_all",
            "test_nogdrive",
            "test_small",
        ]
    );
}

#[test]
fn sets_are_joined_from_left_to_right() {
    let library = shipped();
    let ids = |set: &str| -> Vec<String> {
        let set = library.set(set).unwrap();
        set.files.iter().map(|file| file.id().to_owned()).collect()
    };
    let hash = |set: &str| library.set(set).unwrap().hash();
    let same = [
        ("arpo_128", "arpo_96 + arpo_32"),
        ("arpo_128 - arpo_32", "arpo_96"),
        ("arpo_128 & chrome", "chrome & arpo_128"),
        ("feasible + infeasible", "all"),
        ("all - feasible", "infeasible"),
        ("chrome + os - proxy", "chrome - proxy + os"),
        ("", "all"),
        ("bb5e4c0d", "bb5e4c0d-f964-439c-97b6-bdb9747de3f4"),
    ];
    for (left, right) in same {
        assert_eq!(ids(left), ids(right), "{left} and {right}");
        assert_eq!(hash(left), hash(right), "{left} and {right}");
    }
    assert_ne!(hash("arpo_32"), hash("arpo_96"));
    assert_eq!(ids("chrome - chrome"), Vec::<String>::new());
    // Pinned: a changed task file or order changes it.
    assert_eq!(hash("arpo_128"), "bf5244aa6bb96cb7");
    assert_eq!(hash("all"), "4ca292c05db7a184");

    let wrong = [
        ("arpo_127", "the nearest name is \"arpo_128\""),
        ("crome", "the nearest name is \"chrome\""),
        ("chrome &", "nothing follows \"&\""),
        ("chrome os", "\"os\" stands where +, & or - has to"),
        ("chrome and", "\"and\" stands where"),
        ("bb5e4c0e", "no task has this id"),
        ("./nowhere.json", "no list, domain, property or id"),
    ];
    for (set, phrase) in wrong {
        let error = library.set(set).unwrap_err().to_string();
        assert!(error.contains(phrase), "{set}: {error}");
    }
}

/// A folder of tasks with two good ones.
fn small_library() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    for (domain, id) in [("os", "a1"), ("vlc", "b1")] {
        let path = root
            .join("examples")
            .join(domain)
            .join(format!("{id}.json"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let task = json!({
            "id": id, "instruction": "x", "config": [], "evaluator": {"func": "infeasible"},
        });
        fs::write(path, task.to_string()).unwrap();
    }
    (folder, root)
}

#[test]
fn lists_and_files_that_do_not_fit_are_named() {
    let (_folder, root) = small_library();
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("plain.json", "[\"b1\", \"a1\"]");
    write("wrong_domain.json", "{\"os\": [\"b1\"]}");
    write("unknown.json", "{\"os\": [\"zz\"]}");
    write("broken.json", "3");
    let bad = json!({"id": "c1", "instruction": "x", "evaluator": {"func": "infeasibel"}});
    write("examples/os/c1.json", &bad.to_string());
    write(
        "examples/os/d1.json",
        &bad.to_string().replace("c1", "other").replace("el", "le"),
    );
    write("faulty.json", "[\"c1\"]");
    let twin = json!({"id": "a1", "instruction": "x", "evaluator": {"func": "infeasible"}});
    write("examples/vlc/a1.json", &twin.to_string());

    let library = Library::open(&root).unwrap();
    assert_eq!(library.set("plain").unwrap().files.len(), 2);
    let told: Vec<String> = library
        .faults()
        .iter()
        .map(|faulty| faulty.to_error().to_string())
        .collect();
    assert_eq!(
        told,
        [
            "examples/os/c1.json: evaluator.func: no metric is called \"infeasibel\"; the nearest name \
         is \"infeasible\"",
            "examples/os/d1.json: id: \"other\", but the file is called \"d1\"",
            "examples/vlc/a1.json: id: examples/os/a1.json has the same",
        ]
    );
    let wrong = [
        (
            "wrong_domain",
            "b1 is listed under \"os\", but lies in \"vlc\"",
        ),
        ("unknown", "unknown.json: no task has the id \"zz\""),
        ("broken", "broken.json: neither a JSON object"),
        ("faulty", "examples/os/c1.json: evaluator.func"),
        ("c1", "examples/os/c1.json: evaluator.func"),
    ];
    for (set, phrase) in wrong {
        let error = library.set(set).unwrap_err().to_string();
        assert!(error.contains(phrase), "{set}: {error}");
    }
    let empty = Library::open(&root.join("nowhere"))
        .unwrap_err()
        .to_string();
    assert!(empty.contains("no task file in it"), "{empty}");
}

pub(crate) fn arpo(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_arpo"))
        .arg("tasks")
        .args(args)
        .output();
    output.unwrap()
}

pub(crate) fn json_of(output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let last = stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| {
        panic!(
            "{error}: {stdout}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn list_and_show_print_what_there_is() {
    let output = arpo(&["list", "--set", "arpo_128", "--domain", "chrome", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let listed = json_of(&output);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 18);
    assert_eq!(listed["hash"].as_str().unwrap().len(), 16);

    let text = String::from_utf8(arpo(&["list", "--domain", "os"]).stdout).unwrap();
    assert_eq!(text.lines().count(), 25);
    assert!(text.contains("24 tasks, 5 of them infeasible"), "{text}");

    let source = arpo(&["show", "0b17a146", "--source"]);
    let id = "0b17a146-2934-46c7-8727-73ff6b6483e8";
    let path = format!(
        "{}/assets/osworld/examples/libreoffice_writer/{id}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let file = fs::read(path).unwrap();
    assert_eq!(source.stdout, file);
    let shown = json_of(&arpo(&["show", id, "--json"]));
    assert_eq!(
        shown["task"],
        serde_json::from_slice::<Value>(&file).unwrap()
    );
    assert_eq!(shown["coverage"], "native");
    let text = String::from_utf8(arpo(&["show", id]).stdout).unwrap();
    assert!(
        text.contains("judged by compare_docx_files of vm_file against cloud_file"),
        "{text}"
    );

    let wrong = arpo(&["show", "zz"]);
    assert_eq!(wrong.status.code(), Some(1));
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("no task has this id"), "{told}");
}

#[test]
fn check_says_who_carries_what() {
    let output = arpo(&["check", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let checked = json_of(&output);
    let count = |name: &str| checked[name].as_u64().unwrap();
    assert_eq!(count("tasks"), 369);
    let sum: u64 = ["native", "sidecar", "credentials", "unsupported"]
        .map(count)
        .iter()
        .sum();
    assert_eq!(sum, 369);
    assert!(count("native") >= 240, "{}", count("native"));
    assert!(count("unsupported") <= 3, "{}", count("unsupported"));
    // Google's account, and the operator's proxy.
    assert!(count("credentials") >= 30, "{}", count("credentials"));
    assert_eq!(count("scored_natively"), 335);
    assert_eq!(checked["faults"], json!([]));
    let missing = checked["missing"].as_array().unwrap();
    let row = |name: &str| missing.iter().find(|row| row["name"] == name);
    // easyocr, which brings torch, is no part of the sidecar.
    assert_eq!(row("compare_image_text").unwrap()["tasks"], 1);
    assert!(row("exact_match").is_none() && row("infeasible").is_none());
    let text = String::from_utf8(arpo(&["check"]).stdout).unwrap();
    let carried_by_none = "metrics that nobody carries, and tasks that name them: ";
    assert!(text.contains(carried_by_none) && text.contains("compare_image_text 1"));
    let total = format!(
        "369 tasks: {} native, {} with the sidecar, {} with credentials, {} unsupported; 0 faulty\n",
        count("native"),
        count("sidecar"),
        count("credentials"),
        count("unsupported")
    );
    assert!(text.ends_with(&total), "{text}");
}

#[test]
fn check_fails_where_a_file_does() {
    let (_folder, root) = small_library();
    let bad = root.join("examples/os/c1.json");
    fs::write(
        bad,
        r#"{"id": "c1", "instruction": "x", "evaluator": {"func": "zap"}}"#,
    )
    .unwrap();
    let data = root.to_str().unwrap();
    let output = arpo(&["check", "--json", "--data", data]);
    assert_eq!(output.status.code(), Some(1));
    let checked = json_of(&output);
    assert_eq!(checked["native"], 2);
    assert_eq!(checked["faults"][0]["file"], "examples/os/c1.json");
    assert_eq!(checked["faults"][0]["key"], "evaluator.func");

    let text = String::from_utf8(arpo(&["check", "--data", data]).stdout).unwrap();
    assert!(!text.contains("nobody carries"), "{text}");
    assert!(
        text.contains("examples/os/c1.json: evaluator.func: no metric"),
        "{text}"
    );
    let listed = arpo(&["list", "--data", data]);
    assert_eq!(listed.status.code(), Some(0));
    let told = String::from_utf8(listed.stderr).unwrap();
    assert!(told.contains("left out: examples/os/c1.json"), "{told}");
}
