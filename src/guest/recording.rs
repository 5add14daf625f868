//! Recordings of the screen, by ffmpeg: for people, so never in the way of anything else.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::answer::Fault;
use super::display::{PATIENCE, Session};
use super::exec::find_program;
use super::{Desktop, TOKEN_VARIABLE, files};

/// How long ffmpeg has for its first bytes, and for its last.
const BEGIN: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(15);

const POLL: Duration = Duration::from_millis(50);

/// The longest recording, seconds: a forgotten one must not fill the disk.
const LONGEST_S: &str = "3600";

const FRAMES_PER_S: &str = "30";

/// One that is made.
#[derive(Debug)]
pub(super) struct Recording {
    ffmpeg: Child,
    video: PathBuf,
    log: PathBuf,
}

impl Drop for Recording {
    fn drop(&mut self) {
        for path in [&self.video, &self.log] {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Recording {
    fn start(display: &str, size: &str) -> Result<Self, Fault> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("arpo-recording-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let (video, log) = (path.with_extension("mp4"), path.with_extension("log"));
        let failed = |error: std::io::Error| Fault::failed(format!("cannot record: {error}"));
        let written = std::fs::File::create(&log).map_err(failed)?;
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-y", "-loglevel", "error", "-f", "x11grab"]);
        command.args([
            "-draw_mouse",
            "1",
            "-framerate",
            FRAMES_PER_S,
            "-video_size",
            size,
        ]);
        command.args([
            "-i",
            display,
            "-t",
            LONGEST_S,
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
        ]);
        // What every player plays needs an even size.
        command.args([
            "-vf",
            "crop=trunc(iw/2)*2:trunc(ih/2)*2",
            "-pix_fmt",
            "yuv420p",
        ]);
        command
            .arg(&video)
            .env_remove(TOKEN_VARIABLE)
            .process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(written);
        let ffmpeg = command.kill_on_drop(true).spawn().map_err(failed)?;
        Ok(Self { ffmpeg, video, log })
    }

    fn is_over(&mut self) -> bool {
        !matches!(self.ffmpeg.try_wait(), Ok(None))
    }

    fn has_begun(&self) -> bool {
        std::fs::metadata(&self.video).is_ok_and(|data| data.len() > 0)
    }

    /// What ffmpeg says of its end.
    fn fault(&self) -> Fault {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().next_back().unwrap_or("it says nothing");
        Fault::failed(format!("ffmpeg failed: {last}"))
    }
}

/// `POST /start_recording`: comes back when the first frame is there.
pub(super) async fn start(State(desktop): State<Arc<Desktop>>) -> Result<Json<Value>, Fault> {
    let mut recording = desktop.recording.lock().await;
    if recording.as_mut().is_some_and(|it| !it.is_over()) {
        return Err(Fault::bad("Recording is already in progress."));
    }
    *recording = None;
    if find_program("ffmpeg").is_none() {
        return Err(Fault::failed(
            "recording needs ffmpeg, which is not installed here",
        ));
    }
    let size = desktop.display.ask(PATIENCE, Session::screen_size).await?;
    let size = format!("{}x{}", size.width, size.height);
    let mut begun = Recording::start(desktop.display.name(), &size)?;
    let end = Instant::now() + BEGIN;
    while !begun.has_begun() {
        if begun.is_over() || Instant::now() >= end {
            return Err(begun.fault());
        }
        sleep(POLL).await;
    }
    *recording = Some(begun);
    Ok(Json(
        json!({"status": "success", "message": "Started recording."}),
    ))
}

/// `POST /end_recording`: the recording, an MP4.
pub(super) async fn end(State(desktop): State<Arc<Desktop>>) -> Result<Response, Fault> {
    let Some(mut recording) = desktop.recording.lock().await.take() else {
        return Err(Fault::bad("No recording in progress to stop."));
    };
    if let Some(pid) = recording
        .ffmpeg
        .id()
        .and_then(|id| Pid::from_raw(id as i32))
    {
        // It writes its index then.
        let _ = kill_process(pid, Signal::INT);
    }
    if timeout(END, recording.ffmpeg.wait()).await.is_err() {
        let _ = recording.ffmpeg.kill().await;
        return Err(Fault::failed(format!(
            "ffmpeg did not end within {} s",
            END.as_secs()
        )));
    }
    if !recording.has_begun() {
        return Err(recording.fault());
    }
    // Opened before its name goes.
    let mut response = files::send(&recording.video).await?;
    let kind = header::HeaderValue::from_static("video/mp4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
