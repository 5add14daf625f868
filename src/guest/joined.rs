//! `GET /arpo/connect/PORT` with `Upgrade: tcp`: the connection becomes one to a port of this machine
//! alone. A desktop whose server is its only door is reached at its other ports through it.

use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::answer::Fault;
use super::display::PATIENCE;

/// What the connection becomes.
const PROTOCOL: &str = "tcp";

pub(super) async fn connect(
    Path(port): Path<u16>,
    mut request: Request,
) -> Result<Response, Fault> {
    let asked = request.headers().get(header::UPGRADE);
    if asked.is_none_or(|value| !value.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes())) {
        let what = format!("a connection needs the header `Upgrade: {PROTOCOL}`");
        return Err(Fault::new(StatusCode::UPGRADE_REQUIRED, what));
    }
    let connecting = TcpStream::connect(("127.0.0.1", port));
    let connected = tokio::time::timeout(PATIENCE, connecting).await;
    let refused = |reason: String| {
        Fault::new(
            StatusCode::BAD_GATEWAY,
            format!("port {port} of 127.0.0.1: {reason}"),
        )
    };
    let mut inner = connected
        .map_err(|_| refused("no answer in time".to_owned()))?
        .map_err(|error| refused(error.to_string()))?;
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let mut outer = TokioIo::new(upgraded);
            // Lasts as long as both sides do.
            let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
        }
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}
