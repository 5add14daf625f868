//! `arpo tasks list` and `arpo tasks show`.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::say;
use crate::cli::tasks::{Args, Chosen, Shown, needs, note_faults};
use crate::evaluator::registry::{Coverage, coverage};
use crate::tasks::{Library, TaskFile};
use crate::types::osworld::{Join, Judge};

pub(super) fn list(args: &Args, library: &Library, chosen: &Chosen) -> anyhow::Result<ExitCode> {
    let set = library.set(&chosen.expression())?;
    note_faults(library);
    if args.json {
        let tasks: Vec<Value> = set.files.iter().map(|file| summary(file)).collect();
        say(json!({
            "set": set.name, "hash": set.hash(), "tasks": tasks, "files": set.urls().len(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    for file in &set.files {
        let mut words = needs(file);
        words.extend(is_infeasible(file).then_some("infeasible"));
        let (domain, id) = (file.task.domain(), file.id());
        let text = first_line(&file.task.instruction);
        say(format_args!(
            "{domain:19} {id}  {:26} {text}",
            words.join(",")
        ));
    }
    let infeasible = set.files.iter().filter(|file| is_infeasible(file)).count();
    say(format_args!(
        "{} tasks, {infeasible} of them infeasible, {} files, hash {}",
        set.files.len(),
        set.urls().len(),
        set.hash()
    ));
    Ok(ExitCode::SUCCESS)
}

/// A task's row for scripts.
fn summary(file: &TaskFile) -> Value {
    json!({
        "id": file.id(), "domain": file.task.domain(), "instruction": file.task.instruction,
        "feasible": !is_infeasible(file), "proxy": file.typed.proxy,
        "internet": file.needs.internet, "google": file.needs.google,
        "files": file.needs.files.len(),
    })
}

fn is_infeasible(file: &TaskFile) -> bool {
    file.typed.judge == Judge::Infeasible
}

/// The first of a text that fits on a line.
fn first_line(text: &str) -> String {
    const WIDTH: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

pub(super) fn show(args: &Args, library: &Library, shown: &Shown) -> anyhow::Result<ExitCode> {
    let file = library.find(&shown.id)?;
    if shown.source {
        let mut out = std::io::stdout();
        // As `say` does with a reader that left.
        let _ = out.write_all(file.text.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        let mut shown = summary(file);
        shown["files"] = json!(file.needs.files);
        shown["coverage"] = json!(coverage(&file.typed));
        // The file's own JSON, not what was read of it.
        shown["task"] = serde_json::from_str(&file.text)?;
        say(shown);
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("{} {}", file.task.domain(), file.id()));
    say(format_args!(
        "  {}",
        file.task.instruction.trim_end().replace('\n', "\n  ")
    ));
    let needs = needs(file);
    if !needs.is_empty() {
        say(format_args!("needs {}", needs.join(", ")));
    }
    for step in &file.typed.setup {
        say(format_args!("set-up {}", step.name()));
    }
    for step in &file.typed.postconfig {
        say(format_args!("before judging {}", step.name()));
    }
    say_judge(&file.typed.judge);
    for url in &file.needs.files {
        say(format_args!("file {url}"));
    }
    say(match coverage(&file.typed) {
        Coverage::Native => "carried by arpo",
        Coverage::Sidecar => "carried with the sidecar",
        Coverage::Credentials => "carried with credentials",
        Coverage::Unsupported => "not carried; `arpo tasks check` says what is missing",
    });
    Ok(ExitCode::SUCCESS)
}

fn say_judge(judge: &Judge) {
    let Judge::Checks { join, checks } = judge else {
        say("judged infeasible: the right answer is to say so");
        return;
    };
    for check in checks {
        let against = check
            .expected
            .as_ref()
            .map_or_else(String::new, |getter| format!(" against {}", getter.name()));
        say(format_args!(
            "judged by {} of {}{against}",
            check.metric.name,
            check.result.name()
        ));
    }
    if checks.len() > 1 {
        say(match join {
            Join::And => "joined by and: 0 if one is 0, else the mean",
            Join::Or => "joined by or: the best",
        });
    }
}
