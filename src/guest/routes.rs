//! The routes: the original's, by its names, and our own under `/arpo`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Form, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Fault, read_json};
use super::display::{Display, DisplayError, PATIENCE, Session};
use super::{
    Counts, Desktop, Options, Token, accessibility, act, count, execution, files, joined, recording,
};
use crate::screen::encode_rgb;
use crate::types::Action;
use crate::types::osworld::setup::WindowName;

/// Bytes of a request's payload.
const MAX_BODY: usize = 16 << 20;

/// Bytes of an uploaded file.
const MAX_UPLOAD: usize = 4 << 30;

type Answer = Result<Json<Value>, Fault>;

/// What the routes share.
pub(super) fn desktop(options: &Options) -> Arc<Desktop> {
    Arc::new(Desktop {
        display: Arc::new(Display::new(options.display.clone())),
        input: Arc::default(),
        recording: tokio::sync::Mutex::default(),
        started: Instant::now(),
        counts: Counts::default(),
    })
}

/// Ends what would go on without the server.
pub(super) async fn finish(desktop: &Desktop) {
    desktop.recording.lock().await.take();
}

pub(super) fn router(desktop: Arc<Desktop>, token: Option<Token>) -> Router {
    let upload = post(files::upload).layer(DefaultBodyLimit::max(MAX_UPLOAD));
    Router::new()
        .route("/arpo", get(about))
        .route("/arpo/act", post(act_route))
        .route("/arpo/connect/{port}", get(joined::connect))
        .route("/screenshot", get(screenshot))
        .route("/platform", get(|| async { "Linux" }))
        .route("/cursor_position", get(cursor_position))
        .route("/screen_size", post(screen_size))
        .route("/window_size", post(window_size))
        .route("/execute", post(execution::execute))
        .route("/setup/execute", post(execution::execute))
        .route(
            "/execute_with_verification",
            post(execution::execute_verified),
        )
        .route(
            "/setup/execute_with_verification",
            post(execution::execute_verified),
        )
        .route("/run_python", post(execution::run_python))
        .route("/run_bash_script", post(execution::run_bash_script))
        .route("/setup/launch", post(execution::launch))
        .route("/setup/open_file", post(execution::open_file))
        .route("/setup/activate_window", post(activate_window))
        .route("/setup/close_window", post(close_window))
        .route("/setup/upload", upload)
        .route("/setup/download_file", post(files::download_file))
        .route("/setup/change_wallpaper", post(files::change_wallpaper))
        .route("/wallpaper", post(files::wallpaper))
        .route("/file", post(files::file))
        .route("/list_directory", post(files::list_directory))
        .route("/desktop_path", post(files::desktop_path))
        .route("/accessibility", get(accessibility::tree))
        .route("/terminal", get(accessibility::terminal))
        .route("/start_recording", post(recording::start))
        .route("/end_recording", post(recording::end))
        .fallback(|| async { Fault::missing("no such route") })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(
            Gate {
                desktop: Arc::clone(&desktop),
                token,
            },
            guard,
        ))
        .with_state(desktop)
}

/// What every request passes.
#[derive(Clone)]
struct Gate {
    desktop: Arc<Desktop>,
    token: Option<Token>,
}

/// Answers only who has the token. What is begun is done to its end, also where whoever asked hangs
/// up: a program keeps its limit then, an action its turn.
async fn guard(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    count(&gate.desktop.counts.requests);
    if let Some(token) = gate.token {
        let header = request.headers().get(header::AUTHORIZATION);
        let text = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if text.map(Token::new) != Some(token) {
            let what = "the request bears no token, or another one";
            return Fault::new(StatusCode::UNAUTHORIZED, what).into_response();
        }
    }
    match tokio::spawn(next.run(request)).await {
        Ok(response) => response,
        Err(_) => Fault::failed("the server failed; its log says more").into_response(),
    }
}

/// `GET /arpo`: what this server is, and what it was asked so far.
async fn about(State(desktop): State<Arc<Desktop>>) -> Json<Value> {
    let screen = desktop.display.ask(PATIENCE, Session::screen_size).await;
    let number = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let counts = &desktop.counts;
    let mut answer = json!({
        "server": "arpo",
        "version": env!("CARGO_PKG_VERSION"),
        "display": desktop.display.name(),
        "screen": screen.as_ref().ok(),
        "uptime_s": desktop.started.elapsed().as_secs_f64(),
        "requests": number(&counts.requests),
        "screenshots": number(&counts.screenshots),
        "actions": number(&counts.actions),
        "commands": number(&counts.commands),
        "connections": desktop.display.opened(),
    });
    // Not `error`: the question itself was answered.
    if let Err(error) = screen {
        answer["trouble"] = error.to_string().into();
    }
    Json(answer)
}

/// `POST /arpo/act`: does an action; comes back when the X server has done it.
async fn act_route(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Answer {
    let action: Action = read_json(&body)?;
    let screen = desktop.display.ask(PATIENCE, Session::screen_size).await?;
    let gestures = act::gestures(&action, screen);
    if !gestures.is_empty() {
        desktop.perform(gestures).await?;
    }
    Ok(Json(json!({"status": "success"})))
}

async fn screenshot(State(desktop): State<Arc<Desktop>>) -> Result<Response, Fault> {
    count(&desktop.counts.screenshots);
    let png = desktop.display.ask(PATIENCE, |session| {
        let picture = session.picture()?;
        let png = encode_rgb(picture.size, &picture.rgb);
        png.map_err(|error| DisplayError::Picture(error).into())
    });
    Ok(([(header::CONTENT_TYPE, "image/png")], png.await?).into_response())
}

async fn cursor_position(State(desktop): State<Arc<Desktop>>) -> Answer {
    let (x, y) = desktop.display.ask(PATIENCE, Session::pointer).await?;
    Ok(Json(json!([x, y])))
}

async fn screen_size(State(desktop): State<Arc<Desktop>>) -> Answer {
    let size = desktop.display.ask(PATIENCE, Session::screen_size).await?;
    Ok(Json(json!(size)))
}

#[derive(Deserialize)]
struct ClassRequest {
    app_class_name: Option<String>,
}

async fn window_size(
    State(desktop): State<Arc<Desktop>>,
    Form(request): Form<ClassRequest>,
) -> Answer {
    let Some(class) = request.app_class_name else {
        return Err(Fault::bad("app_class_name is required"));
    };
    let asked = class.clone();
    let size = desktop
        .display
        .ask(PATIENCE, move |session| session.size_of_class(&class));
    let size = size.await?;
    let size = size.ok_or_else(|| Fault::missing(format!("no window of class {asked}")))?;
    Ok(Json(json!(size)))
}

/// Says yes where there is no such window, as the original does: task files bring windows to the
/// front that an agent may have closed, and are judged all the same.
async fn activate_window(
    State(desktop): State<Arc<Desktop>>,
    body: Bytes,
) -> Result<String, Fault> {
    let name: WindowName = read_json(&body)?;
    let window = desktop
        .display
        .ask(PATIENCE, move |session| session.activate(&name))
        .await?;
    Ok(match window {
        Some(window) => format!("Window activated successfully: {}", window.title),
        None => "No such window".to_owned(),
    })
}

/// As `activate_window`.
async fn close_window(State(desktop): State<Arc<Desktop>>, body: Bytes) -> Result<String, Fault> {
    let name: WindowName = read_json(&body)?;
    let window = desktop
        .display
        .ask(PATIENCE, move |session| session.close(&name))
        .await?;
    Ok(match window {
        Some(window) => format!("Window closed successfully: {}", window.title),
        None => "No such window".to_owned(),
    })
}
