//! Routes that run programs. What an agent does comes this way too, from OSWorld's own controllers:
//! as Python that calls pyautogui, which `pyautogui` reads where it can.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::answer::{Fault, is_true, read_json};
use super::display::{DisplayError, PATIENCE, Session};
use super::exec::{Outcome, Program, RunError, find_program};
use super::files::{expand, expand_home};
use super::input::{self, Gesture};
use super::windows::{Window, holds};
use super::{Desktop, count, pyautogui};

/// One command.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// A Python program.
const PYTHON_LIMIT: Duration = Duration::from_secs(30);

/// A bash script, unless the request says otherwise.
const SCRIPT_LIMIT_S: f64 = 100.0;

/// The longest that a request may say.
const LONGEST_S: f64 = 3600.0;

/// The command that checks another one.
const CHECK_LIMIT: Duration = Duration::from_secs(5);

/// For the window of what was opened. The original waits half an hour, with everything behind it.
const OPEN_LIMIT: Duration = Duration::from_secs(180);

const POLL: Duration = Duration::from_millis(100);

type Answer = Result<Json<Value>, Fault>;

/// A command as it is sent.
#[derive(Debug, Deserialize)]
struct CommandRequest {
    command: CommandLine,
    #[serde(default)]
    shell: Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CommandLine {
    Text(String),
    List(Vec<String>),
}

impl CommandRequest {
    /// The program and its arguments, as Python's `subprocess` makes them of both forms.
    fn argv(&self) -> Result<Vec<String>, Fault> {
        let mut words = match (&self.command, is_true(&self.shell)) {
            (CommandLine::Text(text), false) => split_words(text)?,
            (CommandLine::Text(text), true) => vec![text.clone()],
            (CommandLine::List(list), _) => list.clone(),
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(Fault::failed("the command is empty"));
        }
        for word in &mut words {
            if word.starts_with("~/") {
                *word = expand_home(word);
            }
        }
        if is_true(&self.shell) {
            words.splice(0..0, ["/bin/sh", "-c"].map(str::to_owned));
        }
        Ok(words)
    }
}

/// Words as a shell without variables reads them.
fn split_words(text: &str) -> Result<Vec<String>, Fault> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let (mut quote, mut rest) = (None, text.chars());
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\\') => word.get_or_insert_default().extend(rest.next()),
            (Some('"'), '\\') => {
                let next = rest.next();
                let is_escape = matches!(next, Some('"' | '\\'));
                let kept = (!is_escape).then_some('\\');
                word.get_or_insert_default()
                    .extend(kept.into_iter().chain(next));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Fault::failed("No closing quotation"));
    }
    words.extend(word);
    Ok(words)
}

impl Desktop {
    fn program(&self, argv: Vec<String>) -> Program {
        Program {
            argv,
            folder: None,
            display: self.display.name().to_owned(),
        }
    }

    /// Does gestures as soon as nobody else does any, to their end even if nobody waits for it.
    pub(super) async fn perform(&self, gestures: Vec<Gesture>) -> Result<(), DisplayError> {
        count(&self.counts.actions);
        let turn = Arc::clone(&self.input).lock_owned().await;
        let limit = input::limit(&gestures);
        let performing = self.display.ask(limit, move |session| {
            let _turn = turn;
            session.perform(&gestures)
        });
        performing.await
    }

    /// Runs a command, or does what it would do.
    async fn execute(&self, argv: Vec<String>) -> Result<Outcome, RunError> {
        if let Some(gestures) = pyautogui::read_command(&argv) {
            // As a program would: its failure is its return code.
            let done = self.perform(gestures).await;
            return Ok(Outcome {
                code: i32::from(done.is_err()),
                stdout: String::new(),
                stderr: done.map_or_else(|error| format!("{error}\n"), |()| String::new()),
            });
        }
        count(&self.counts.commands);
        let argv = pyautogui::without_prefix(argv);
        self.program(argv).run(COMMAND_LIMIT).await
    }

    async fn windows(&self) -> Result<Vec<Window>, DisplayError> {
        self.display.ask(PATIENCE, Session::windows).await
    }
}

fn told(outcome: &Outcome) -> Value {
    json!({
        "status": "success",
        "output": outcome.stdout,
        "error": outcome.stderr,
        "returncode": outcome.code,
    })
}

fn failed(error: &RunError) -> Fault {
    Fault::failed(error.to_string())
}

/// `POST /execute`: success whatever the return code.
pub(super) async fn execute(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Answer {
    let request: CommandRequest = read_json(&body)?;
    let outcome = desktop.execute(request.argv()?).await;
    Ok(Json(told(&outcome.map_err(|error| failed(&error))?)))
}

/// What has to hold after a command.
#[derive(Debug, Default, Deserialize)]
struct Verification {
    window_exists: Option<String>,
    command_success: Option<String>,
}

#[derive(Debug, Deserialize)]
struct VerifiedRequest {
    #[serde(default)]
    verification: Verification,
    max_wait_time: Option<f64>,
    check_interval: Option<f64>,
}

/// `POST /execute_with_verification`: waits until what was to come of it has.
pub(super) async fn execute_verified(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Answer {
    let request: CommandRequest = read_json(&body)?;
    let verified: VerifiedRequest = read_json(&body)?;
    let outcome = desktop.execute(request.argv()?).await;
    let mut answer = told(&outcome.map_err(|error| failed(&error))?);
    let longest = seconds(verified.max_wait_time, 10.0);
    let interval = seconds(verified.check_interval, 1.0).max(POLL);
    let started = Instant::now();
    loop {
        if desktop.holds(&verified.verification).await? {
            answer["verification"] = "passed".into();
            answer["wait_time"] = started.elapsed().as_secs_f64().into();
            return Ok(Json(answer));
        }
        if started.elapsed() + interval > longest {
            answer["status"] = "verification_failed".into();
            answer["wait_time"] = longest.as_secs_f64().into();
            return Err(Fault::json(StatusCode::INTERNAL_SERVER_ERROR, answer));
        }
        sleep(interval).await;
    }
}

impl Desktop {
    async fn holds(&self, verification: &Verification) -> Result<bool, Fault> {
        if let Some(title) = &verification.window_exists {
            let windows = self.windows().await?;
            if !windows.iter().any(|window| holds(&window.title, title)) {
                return Ok(false);
            }
        }
        let Some(command) = &verification.command_success else {
            return Ok(true);
        };
        let argv = ["/bin/sh", "-c", command].map(str::to_owned);
        let checked = self.program(argv.to_vec()).run(CHECK_LIMIT).await;
        Ok(checked.is_ok_and(|outcome| outcome.code == 0))
    }
}

/// A time of a request, within reason.
fn seconds(asked: Option<f64>, usual: f64) -> Duration {
    // JSON has only numbers that are.
    Duration::from_secs_f64(asked.unwrap_or(usual).clamp(0.0, LONGEST_S))
}

/// A program's source in a file, for as long as it runs: an argument has a limit.
struct SourceFile(PathBuf);

impl SourceFile {
    fn write(source: &str, extension: &str) -> Result<Self, Fault> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("arpo-{}-{number}.{extension}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let written = std::fs::write(&path, source);
        written
            .map_err(|error| Fault::failed(format!("cannot write {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for SourceFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// `POST /run_python`: success by the status in the answer, and another name for the return code.
pub(super) async fn run_python(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Request {
        #[serde(default)]
        code: String,
    }
    let Request { code } = read_json(&body)?;
    if code.is_empty() {
        return Err(Fault::bad("Code not supplied!"));
    }
    count(&desktop.counts.commands);
    let source = SourceFile::write(&code, "py")?;
    let argv = vec!["python3".to_owned(), source.name()];
    let outcome = desktop.program(argv).run(PYTHON_LIMIT).await;
    let Outcome {
        code,
        stdout,
        stderr,
    } = outcome.map_err(|error| failed(&error))?;
    let (status, message) = match code {
        0 => ("success", stdout.clone()),
        _ => ("error", stderr.clone()),
    };
    Ok(Json(json!({
        "status": status,
        "message": message,
        "need_more": false,
        "output": stdout,
        "error": stderr,
        "return_code": code,
    })))
}

/// `POST /run_bash_script`: both outputs in one, as they come.
pub(super) async fn run_bash_script(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Request {
        #[serde(default)]
        script: String,
        timeout: Option<f64>,
        working_dir: Option<String>,
    }
    let request: Request = read_json(&body)?;
    if request.script.is_empty() {
        return Err(Fault::bad("No script provided"));
    }
    let folder = request
        .working_dir
        .map(|folder| PathBuf::from(expand(&folder)));
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        let what = format!("Working directory does not exist: {}", folder.display());
        return Err(Fault::bad(what));
    }
    count(&desktop.counts.commands);
    let source = SourceFile::write(&request.script, "sh")?;
    let shell = ["/bin/sh", "-c", "exec bash \"$0\" 2>&1"].map(str::to_owned);
    let argv = shell.into_iter().chain([source.name()]).collect();
    let program = Program {
        folder,
        ..desktop.program(argv)
    };
    let outcome = program.run(seconds(request.timeout, SCRIPT_LIMIT_S)).await;
    let (status, outcome) = match outcome {
        Ok(outcome) => (StatusCode::OK, outcome),
        Err(error) => {
            let outcome = Outcome {
                code: -1,
                stdout: error.to_string(),
                stderr: String::new(),
            };
            (StatusCode::INTERNAL_SERVER_ERROR, outcome)
        }
    };
    let mut answer = told(&outcome);
    if outcome.code != 0 {
        answer["status"] = "error".into();
    }
    match status {
        StatusCode::OK => Ok(Json(answer)),
        status => Err(Fault::json(status, answer)),
    }
}

/// `POST /setup/launch`: starts a program and does not look after it.
pub(super) async fn launch(
    State(desktop): State<Arc<Desktop>>,
    body: Bytes,
) -> Result<String, Fault> {
    let request: CommandRequest = read_json(&body)?;
    let argv = request.argv()?;
    count(&desktop.counts.commands);
    let launched = desktop.program(argv.clone()).launch();
    launched.map_err(|error| failed(&error))?;
    Ok(format!("{} launched successfully", argv.join(" ")))
}

/// `POST /setup/open_file`: opens a file with the program for its kind, or a program, and waits for
/// the window.
pub(super) async fn open_file(
    State(desktop): State<Arc<Desktop>>,
    body: Bytes,
) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Request {
        path: String,
    }
    let Request { path } = read_json(&body)?;
    let file = PathBuf::from(expand(&path));
    let (argv, names) = if file.exists() {
        let part = |part: Option<&std::ffi::OsStr>| {
            part.map_or_else(String::new, |it| it.to_string_lossy().into_owned())
        };
        let names = [part(file.file_name()), part(file.file_stem())];
        let argv = vec!["xdg-open".to_owned(), file.display().to_string()];
        (argv, names)
    } else if find_program(&path).is_some() {
        (vec![path.clone()], [path.clone(), path.clone()])
    } else {
        return Err(Fault::missing(format!(
            "Application/file not found: {path}"
        )));
    };
    let is_program = argv.len() == 1;
    let launched = desktop.program(argv).launch();
    launched.map_err(|error| failed(&error))?;
    let is_it = |window: &Window| {
        let classes = window.class.iter();
        names.iter().any(|name| holds(&window.title, name))
            || is_program && classes.clone().any(|class| holds(class, &names[0]))
    };
    let end = Instant::now() + OPEN_LIMIT;
    while Instant::now() < end {
        if desktop.windows().await?.iter().any(is_it) {
            return Ok("File opened successfully".to_owned());
        }
        sleep(POLL).await;
    }
    let waited = OPEN_LIMIT.as_secs();
    Err(Fault::failed(format!(
        "no window of {path} within {waited} s"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CommandRequest, split_words};

    // python: shlex.split(text)
    #[test]
    fn words_are_split_as_shlex_does() {
        let table: &[(&str, &[&str])] = &[
            ("ls -l  /tmp", &["ls", "-l", "/tmp"]),
            ("a 'b c' d\"e f\"g", &["a", "b c", "de fg"]),
            (r#"a\ b "c\"d\e" '\'"#, &["a b", r#"c"d\e"#, "\\"]),
            ("echo a && b ''", &["echo", "a", "&&", "b", ""]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(split_words(text).unwrap(), *expected, "{text}");
        }
        assert!(split_words("a 'b").is_err());
    }

    #[test]
    fn both_forms_of_a_command_are_read_as_python_does() {
        let home = std::env::home_dir().unwrap().display().to_string();
        let table = [
            (json!({"command": "a 'b c'"}), json!(["a", "b c"])),
            (
                json!({"command": "a | b", "shell": "true"}),
                json!(["/bin/sh", "-c", "a | b"]),
            ),
            (
                json!({"command": ["a", "b"], "shell": true}),
                json!(["/bin/sh", "-c", "a", "b"]),
            ),
            (
                json!({"command": ["a", "~/b", "c~/"], "shell": false}),
                json!(["a", format!("{home}/b"), "c~/"]),
            ),
        ];
        for (request, expected) in table {
            let read: CommandRequest = serde_json::from_value(request.clone()).unwrap();
            assert_eq!(json!(read.argv().unwrap()), expected, "{request}");
        }
    }
}
