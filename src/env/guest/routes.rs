//! Every route of OSWorld's guest server, typed.
//!
//! Source: OSWorld `desktop_env/server/main.py` (2026-04); where its versions differ, both forms
//! are read. `/setup/execute` and `/setup/execute_with_verification` are the same as the routes
//! without `/setup`. What is under `/arpo` is our own server's, `arpo guest`.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::call::{Body, Call, Content, Repeat, Route, file_error};
use super::error::{GuestError, gist};
use super::input;
use super::reply::{Command, Entry, Output, Patience, Verification};
use super::{Guest, Server};
use crate::screen::decode_png;
use crate::types::osworld::setup::WindowName;
use crate::types::{Action, Point, ScreenSize, Screenshot};

/// What the server allows one command; ours is longer, so that it is the guest that gives up.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// What the server allows `/run_python`.
const PYTHON_LIMIT: Duration = Duration::from_secs(30);

/// What the server waits when a recording begins and ends.
const RECORDING_LIMIT: Duration = Duration::from_secs(20);

macro_rules! routes {
    ($($name:ident = $method:ident $path:literal, $answers:ident, $repeat:ident;)*) => {
        $(pub(super) static $name: Route = Route {
            method: Method::$method,
            path: $path,
            answers: Content::$answers,
            repeat: Repeat::$repeat,
        };)*
    };
}

routes! {
    ABOUT = GET "/arpo", Json, Harmless;
    ACT = POST "/arpo/act", Json, Never;
    SCREENSHOT = GET "/screenshot", Png, Harmless;
    PLATFORM = GET "/platform", Text, Harmless;
    CURSOR_POSITION = GET "/cursor_position", Json, Harmless;
    SCREEN_SIZE = POST "/screen_size", Json, Harmless;
    WINDOW_SIZE = POST "/window_size", Json, Harmless;
    DESKTOP_PATH = POST "/desktop_path", Json, Harmless;
    WALLPAPER = POST "/wallpaper", File, Harmless;
    LIST_DIRECTORY = POST "/list_directory", Json, Harmless;
    TERMINAL = GET "/terminal", Json, Harmless;
    ACCESSIBILITY = GET "/accessibility", Json, Harmless;
    FILE = POST "/file", File, Harmless;
    UPLOAD = POST "/setup/upload", Text, Harmless;
    DOWNLOAD_FILE = POST "/setup/download_file", Text, Harmless;
    CHANGE_WALLPAPER = POST "/setup/change_wallpaper", Text, Harmless;
    ACTIVATE_WINDOW = POST "/setup/activate_window", Text, Harmless;
    CLOSE_WINDOW = POST "/setup/close_window", Text, Never;
    OPEN_FILE = POST "/setup/open_file", Text, Never;
    LAUNCH = POST "/setup/launch", Text, Never;
    EXECUTE = POST "/execute", Json, Never;
    EXECUTE_WITH_VERIFICATION = POST "/execute_with_verification", Json, Never;
    RUN_PYTHON = POST "/run_python", Json, Never;
    RUN_BASH_SCRIPT = POST "/run_bash_script", Json, Never;
    START_RECORDING = POST "/start_recording", Json, Never;
    END_RECORDING = POST "/end_recording", File, Never;
}

#[derive(Deserialize)]
struct SizeReply {
    width: u32,
    height: u32,
}

impl From<SizeReply> for ScreenSize {
    fn from(SizeReply { width, height }: SizeReply) -> Self {
        Self { width, height }
    }
}

/// What is on the screen.
impl Guest {
    /// The screen. Counted, whatever comes of it: see `needs_restart`.
    pub async fn screenshot(&self) -> Result<Screenshot, GuestError> {
        self.look(self.options.tries).await
    }

    /// One at a time: the server writes all of them into one file.
    pub(super) async fn look(&self, tries: u32) -> Result<Screenshot, GuestError> {
        let _turn = self.screenshot_turn.lock().await;
        let mut number = 1;
        let screenshot = loop {
            let png = self.ask(&self.call(&SCREENSHOT).tries(tries)).await?;
            let decoded = tokio::task::spawn_blocking(move || decode_png(&png)).await;
            match decoded.expect("decoding does not panic") {
                Ok(screenshot) => break screenshot,
                // Half a file: somebody else's screenshot came between.
                Err(_) if number < tries => number += 1,
                Err(error) => return Err(GuestError::Screenshot(error)),
            }
        };
        let (came, expected) = (screenshot.size(), self.options.screen);
        if came != expected {
            return Err(GuestError::ScreenSize { expected, came });
        }
        Ok(screenshot)
    }

    /// `Linux`, `Windows` or `Darwin`: the cheapest question.
    pub async fn platform(&self) -> Result<String, GuestError> {
        self.ask_text(&self.call(&PLATFORM)).await
    }

    /// Where the pointer is, in pixels.
    pub async fn cursor_position(&self) -> Result<Point, GuestError> {
        let (x, y): (f32, f32) = self.ask_json(&self.call(&CURSOR_POSITION)).await?;
        Ok(Point { x, y })
    }

    /// The size of the screen, as X says.
    pub async fn screen_size(&self) -> Result<ScreenSize, GuestError> {
        let reply: SizeReply = self.ask_json(&self.call(&SCREEN_SIZE)).await?;
        Ok(reply.into())
    }

    /// The size of the first window of a class, if there is one; older servers answer 500 then.
    pub async fn window_size(&self, class: &str) -> Result<Option<ScreenSize>, GuestError> {
        let call = self.call(&WINDOW_SIZE).detail(class);
        let call = call.body(Body::Field("app_class_name", class));
        let reply: Option<SizeReply> = found(self.ask_json(&call).await)?;
        Ok(reply.map(ScreenSize::from))
    }

    /// The accessibility tree as XML. Takes seconds on a full desktop.
    pub async fn accessibility_tree(&self) -> Result<String, GuestError> {
        #[derive(Deserialize)]
        struct Reply {
            #[serde(rename = "AT")]
            tree: String,
        }
        let call = self.call(&ACCESSIBILITY).within(self.options.slow_deadline);
        let reply: Reply = self.ask_json(&call).await?;
        Ok(reply.tree)
    }

    /// What the terminal shows that has the focus, if one has it.
    pub async fn terminal_output(&self) -> Result<Option<String>, GuestError> {
        #[derive(Deserialize)]
        struct Reply {
            output: Option<String>,
        }
        let call = self.call(&TERMINAL).within(self.options.slow_deadline);
        let reply: Reply = self.ask_json(&call).await?;
        Ok(reply.output)
    }

    /// The desktop's picture, if it has one.
    pub async fn wallpaper(&self) -> Result<Option<Vec<u8>>, GuestError> {
        found(self.ask(&self.call(&WALLPAPER)).await)
    }

    /// Sets the desktop's picture to a file on the desktop.
    pub async fn change_wallpaper(&self, path: &str) -> Result<(), GuestError> {
        let call = self.call(&CHANGE_WALLPAPER).detail(path);
        self.ask(&call.json(json!({"path": path}))).await?;
        Ok(())
    }
}

/// Input and programs.
impl Guest {
    /// Does what an agent wants done, once. Waiting and ending are not the desktop's.
    pub async fn act(&self, action: &Action) -> Result<(), GuestError> {
        let Some(source) = input::python(action, self.options.screen) else {
            return Ok(());
        };
        if self.server().await? == Server::Arpo {
            let call = self.call(&ACT).detail(action.name()).json(json!(action));
            self.ask(&call.within(COMMAND_LIMIT + self.options.deadline))
                .await?;
            return Ok(());
        }
        let command = Command::program(["python", "-c", source.as_str()]);
        let call = self.call(&EXECUTE).detail(action.name());
        let call = call.within(COMMAND_LIMIT + self.options.deadline);
        self.checked(&call.json(command.to_json())).await?;
        Ok(())
    }

    /// Whose server it is; asked once in its life.
    async fn server(&self) -> Result<Server, GuestError> {
        if let Some(server) = self.known_server() {
            return Ok(server);
        }
        let server = match self.ask(&self.call(&ABOUT)).await {
            Ok(_) => Server::Arpo,
            // It has a page for what it does not know.
            Err(
                GuestError::Status { .. }
                | GuestError::ContentType { .. }
                | GuestError::Reported { status: 404, .. },
            ) => Server::Original,
            Err(error) => return Err(error),
        };
        self.set_server(Some(server));
        Ok(server)
    }

    /// Runs a program to its end, whatever its return code.
    pub async fn execute(&self, command: &Command) -> Result<Output, GuestError> {
        self.ask_json(&self.execution(command)).await
    }

    /// Runs a program to its end; a return code other than 0 is an error.
    pub async fn run(&self, command: &Command) -> Result<Output, GuestError> {
        self.checked(&self.execution(command)).await
    }

    pub(super) fn execution(&self, command: &Command) -> Call<'static> {
        self.call(&EXECUTE)
            .detail(&command.detail())
            .within(COMMAND_LIMIT + self.options.deadline)
            .json(command.to_json())
    }

    pub(super) async fn checked(&self, call: &Call<'_>) -> Result<Output, GuestError> {
        let output: Output = self.ask_json(call).await?;
        if output.returncode == 0 {
            return Ok(output);
        }
        let said = [&output.stderr, &output.stdout];
        let said = said.into_iter().find(|text| !text.trim().is_empty());
        Err(GuestError::ReturnCode {
            asked: call.asked(),
            code: output.returncode,
            told: gist(said.map_or("", String::as_str).as_bytes()),
        })
    }

    /// Runs a program to its end and waits until something holds. Newer servers only.
    pub async fn execute_until(
        &self,
        command: &Command,
        verification: &Verification,
        patience: Patience,
    ) -> Result<Output, GuestError> {
        let mut json = command.to_json();
        json["verification"] = json!(verification);
        json["max_wait_time"] = json!(patience.longest.as_secs_f64());
        json["check_interval"] = json!(patience.interval.as_secs_f64());
        let longest = COMMAND_LIMIT + patience.longest + patience.interval;
        let call = self.call(&EXECUTE_WITH_VERIFICATION);
        let call = call.detail(&command.detail()).json(json);
        let call = call.within(longest + self.options.deadline);
        self.ask_json(&call).await
    }

    /// Starts a program and does not wait for it.
    pub async fn launch(&self, command: &Command) -> Result<(), GuestError> {
        let call = self.call(&LAUNCH).detail(&command.detail());
        self.ask(&call.json(command.to_json())).await?;
        Ok(())
    }

    /// Runs a Python program by the server's own Python, at most 30 s.
    pub async fn run_python(&self, code: &str) -> Result<Output, GuestError> {
        let call = self.call(&RUN_PYTHON).json(json!({"code": code}));
        let call = call.within(PYTHON_LIMIT + self.options.deadline);
        self.ask_json(&call).await
    }

    /// Runs a bash script; what it writes is in `stdout`. Some versions of the original answer 500
    /// *after* the script has run: prefer `execute`.
    pub async fn run_bash_script(
        &self,
        script: &str,
        limit: Duration,
    ) -> Result<Output, GuestError> {
        let json = json!({"script": script, "timeout": limit.as_secs_f64()});
        let call = self.call(&RUN_BASH_SCRIPT).json(json);
        let call = call.within(limit + self.options.deadline);
        self.ask_json(&call).await
    }

    /// Opens a file or a program and waits for its window. The original waits half an hour, and
    /// goes on waiting when we do not.
    pub async fn open_file(&self, path: &str, within: Duration) -> Result<(), GuestError> {
        let call = self.call(&OPEN_FILE).detail(path).within(within);
        self.ask(&call.json(json!({"path": path}))).await?;
        Ok(())
    }

    /// Brings a window to the front. Says nothing of whether there is one.
    pub async fn activate_window(&self, window: &WindowName) -> Result<(), GuestError> {
        self.window(&ACTIVATE_WINDOW, window).await
    }

    /// Closes a window. Says nothing of whether there was one.
    pub async fn close_window(&self, window: &WindowName) -> Result<(), GuestError> {
        self.window(&CLOSE_WINDOW, window).await
    }

    async fn window(&self, route: &'static Route, window: &WindowName) -> Result<(), GuestError> {
        let WindowName {
            window_name,
            strict,
            by_class,
        } = window;
        let json = json!({"window_name": window_name, "strict": strict, "by_class": by_class});
        self.ask(&self.call(route).detail(window_name).json(json))
            .await?;
        Ok(())
    }
}

/// Files.
impl Guest {
    /// The content of a file on the desktop; `None` if there is none. For large ones see
    /// `download`.
    pub async fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, GuestError> {
        found(self.ask(&self.file(path)).await)
    }

    /// Writes a file on the desktop into one of this machine; `false` if there is none. What came
    /// of one that ends in an error is removed.
    pub async fn download(&self, path: &str, to: &Path) -> Result<bool, GuestError> {
        let limit = self.options.max_file_bytes;
        let call = self.file(path).limit(limit).into_file(to);
        let result = self.ask(&call.within(self.options.transfer_deadline)).await;
        Ok(found(result)?.is_some())
    }

    fn file<'a>(&self, path: &'a str) -> Call<'a> {
        let call = self.call(&FILE).detail(path);
        call.body(Body::Field("file_path", path))
    }

    /// Writes a file of this machine onto the desktop, with the folders above it.
    pub async fn upload(&self, from: &Path, to: &str) -> Result<(), GuestError> {
        let file = tokio::fs::metadata(from);
        let bytes = file.await.map_err(file_error("read", from))?.len();
        let call = self.call(&UPLOAD).detail(to);
        let call = call.body(Body::Upload { from, to });
        let call = call.within(self.options.transfer_deadline);
        let told = self.ask_text(&call).await?;
        // Newer servers say how much they have.
        let there = told.split(' ').find_map(|word| word.parse::<u64>().ok());
        if there.is_some_and(|there| there != bytes) {
            return Err(GuestError::Reported {
                asked: call.asked(),
                status: 200,
                told: format!("{} of {bytes} bytes", gist(told.as_bytes())),
            });
        }
        Ok(())
    }

    /// Lets the guest fetch a file from the web itself: three tries of five minutes. OSWorld's own
    /// host does not; it uploads.
    pub async fn download_file(&self, url: &str, path: &str) -> Result<(), GuestError> {
        let call = self.call(&DOWNLOAD_FILE).detail(url);
        let call = call.within(3 * Duration::from_secs(300) + self.options.deadline);
        self.ask(&call.json(json!({"url": url, "path": path})))
            .await?;
        Ok(())
    }

    /// A folder and all below it, without an end to how much that is.
    pub async fn list_directory(&self, path: &str) -> Result<Entry, GuestError> {
        #[derive(Deserialize)]
        struct Reply {
            directory_tree: Entry,
        }
        let call = self.call(&LIST_DIRECTORY).detail(path);
        let call = call.json(json!({"path": path}));
        let call = call.within(self.options.slow_deadline);
        let reply: Reply = self.ask_json(&call).await?;
        Ok(reply.directory_tree)
    }

    /// The folder that the desktop shows.
    pub async fn desktop_path(&self) -> Result<String, GuestError> {
        #[derive(Deserialize)]
        struct Reply {
            desktop_path: String,
        }
        let reply: Reply = self.ask_json(&self.call(&DESKTOP_PATH)).await?;
        Ok(reply.desktop_path)
    }
}

/// Recordings: for people, never worth an episode.
impl Guest {
    /// Begins to record the screen; takes two seconds. Screens but `:0` cannot be.
    pub async fn start_recording(&self) -> Result<(), GuestError> {
        #[derive(Deserialize)]
        struct Reply {}
        let call = self.call(&START_RECORDING);
        let call = call.within(RECORDING_LIMIT + self.options.deadline);
        let Reply {} = self.ask_json(&call).await?;
        Ok(())
    }

    /// Ends the recording and writes it, an MP4, into a file of this machine.
    pub async fn end_recording(&self, to: &Path) -> Result<(), GuestError> {
        let call = self.call(&END_RECORDING).into_file(to);
        let call = call.limit(self.options.max_file_bytes);
        let deadline = RECORDING_LIMIT + self.options.transfer_deadline;
        self.ask(&call.within(deadline)).await?;
        Ok(())
    }
}

/// `None` where the server says that there is no such thing.
fn found<T>(result: Result<T, GuestError>) -> Result<Option<T>, GuestError> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(GuestError::Status { status: 404, .. } | GuestError::Reported { status: 404, .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
