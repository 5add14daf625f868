//! A connection to a port of the guest's own, through its server: ours alone has that route.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::Guest;
use super::error::{Asked, GuestError, gist};
use crate::env::machine::Connection;

/// The route, as errors tell it.
const ROUTE: &str = "/arpo/connect";

/// Bytes that are read of an answer that says no.
const MAX_TOLD: usize = 64 << 10;

impl Guest {
    /// A connection to a port that a program on the guest listens on, as a client on the guest
    /// itself would have.
    pub async fn connect_to(&self, port: u16) -> Result<Box<dyn Connection>, GuestError> {
        let asked = Asked {
            route: ROUTE,
            detail: format!("port {port}"),
        };
        let limit = self.options.deadline;
        let joining = timeout(limit, self.join(port, &asked)).await;
        joining.unwrap_or(Err(GuestError::Timeout {
            asked: asked.clone(),
            after: limit,
        }))
    }

    async fn join(&self, port: u16, asked: &Asked) -> Result<Box<dyn Connection>, GuestError> {
        let unreachable = |error: &dyn std::fmt::Display| GuestError::Unreachable {
            asked: asked.clone(),
            reason: error.to_string(),
        };
        let broken = |error: hyper::Error| GuestError::Broken {
            asked: asked.clone(),
            reason: error.to_string(),
        };
        let stream = timeout(self.options.connect_deadline, self.open_stream()).await;
        let stream = stream
            .map_err(|_| unreachable(&late(self.options.connect_deadline)))?
            .map_err(|error| unreachable(&error))?;
        let opened = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(broken)?;
        // Ends with the connection.
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::get(format!("{ROUTE}/{port}"))
            .header(header::HOST, "localhost")
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "tcp");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| unreachable(&error))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let body = Limited::new(response.into_body(), MAX_TOLD).collect().await;
            let told = body.map(|body| gist(&body.to_bytes())).unwrap_or_default();
            return Err(GuestError::Reported {
                asked: asked.clone(),
                status: status.as_u16(),
                told,
            });
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }

    async fn open_stream(&self) -> std::io::Result<Box<dyn Connection>> {
        Ok(match &self.socket {
            Some(path) => Box::new(UnixStream::connect(path).await?),
            None => Box::new(TcpStream::connect(self.address()).await?),
        })
    }
}

fn late(after: Duration) -> String {
    format!("no answer within {} s", after.as_secs_f64())
}
