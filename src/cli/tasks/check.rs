//! `arpo tasks check`: whether all files load, and who carries out what they name.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::tasks::Args;
use crate::cli::{FAILED, say};
use crate::evaluator::registry::{
    Carrier, Coverage, Part, PartKind, carrier, coverage, is_scored_natively, parts,
};
use crate::tasks::Library;

pub(super) fn check(args: &Args, library: &Library) -> ExitCode {
    let files = library.files();
    let count = |of: Coverage| {
        files
            .iter()
            .filter(|file| coverage(&file.typed) == of)
            .count()
    };
    let scored = files
        .iter()
        .filter(|file| is_scored_natively(&file.typed))
        .count();
    let missing = missing_parts(library);
    let faults = library.faults();
    if args.json {
        let missing = missing
            .iter()
            .map(|(part, tasks)| json!({ "kind": part.kind, "name": part.name, "tasks": tasks }));
        let faults = faults.iter().map(|faulty| {
            let (key, reason) = (&faulty.fault.key, &faulty.fault.reason);
            json!({ "file": faulty.path, "key": key, "reason": reason })
        });
        say(json!({
            "tasks": files.len(),
            "native": count(Coverage::Native),
            "sidecar": count(Coverage::Sidecar),
            "credentials": count(Coverage::Credentials),
            "unsupported": count(Coverage::Unsupported),
            "scored_natively": scored,
            "missing": missing.collect::<Vec<Value>>(),
            "faults": faults.collect::<Vec<Value>>(),
        }));
        return exit_code(library);
    }
    for faulty in faults {
        say(faulty.to_error());
    }
    for (kind, words) in [
        (PartKind::Setup, "set-up steps"),
        (PartKind::Getter, "getters"),
        (PartKind::Metric, "metrics"),
    ] {
        let of_kind: Vec<String> = missing
            .iter()
            .filter(|(part, _)| part.kind == kind)
            .map(|(part, tasks)| format!("{} {tasks}", part.name))
            .collect();
        if !of_kind.is_empty() {
            let names = of_kind.join(", ");
            say(format_args!(
                "{words} that nobody carries, and tasks that name them: {names}"
            ));
        }
    }
    say(format_args!(
        "{scored} tasks name no metric but native ones"
    ));
    say(format_args!(
        "{} tasks: {} native, {} with the sidecar, {} with credentials, {} unsupported; {} faulty",
        files.len(),
        count(Coverage::Native),
        count(Coverage::Sidecar),
        count(Coverage::Credentials),
        count(Coverage::Unsupported),
        faults.len()
    ));
    exit_code(library)
}

fn exit_code(library: &Library) -> ExitCode {
    if library.faults().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

/// What nobody carries, with the number of tasks that name it, the most wanted first.
fn missing_parts(library: &Library) -> Vec<(Part, usize)> {
    let mut tasks: BTreeMap<Part, usize> = BTreeMap::new();
    for part in library.files().iter().flat_map(|file| parts(&file.typed)) {
        *tasks.entry(part).or_default() += 1;
    }
    tasks.retain(|part, _| matches!(carrier(*part), Carrier::None | Carrier::Native { cases: 0 }));
    let mut missing: Vec<(Part, usize)> = tasks.into_iter().collect();
    missing.sort_by_key(|(part, tasks)| (part.kind, std::cmp::Reverse(*tasks)));
    missing
}
