//! Players: what VLC plays, what opens videos.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::{GetterError, commands, raised, value};
use crate::env::RealDesktop;
use crate::evaluator::found::{Found, FoundFile};
use crate::types::OneOrMany;
use crate::types::osworld::FileName;
use crate::types::osworld::getter::CommandLine;

/// Where VLC's web page is on OSWorld's machines.
const VLC_PORT: u16 = 8080;

/// For its answer.
const VLC_DEADLINE: Duration = Duration::from_secs(15);

/// Bytes of it.
const MAX_STATUS_BYTES: usize = 16 << 20;

/// `get_vlc_playing_info`. Without a VLC to ask OSWorld raises; the desktop is well all the same.
pub(super) async fn vlc_playing(
    desktop: RealDesktop<'_>,
    dest: &FileName,
) -> Result<Found, GetterError> {
    let asked = timeout(VLC_DEADLINE, vlc_status(desktop)).await;
    let asked = asked.map_err(|_| raised("VLC does not answer"))?;
    let status = asked.map_err(|error| raised(format!("VLC does not answer: {error}")))?;
    Ok(status.map_or(Found::NOTHING, |bytes| {
        Found::File(FoundFile::new(dest.as_str(), bytes))
    }))
}

/// VLC's status page; none where it refuses it.
async fn vlc_status(
    desktop: RealDesktop<'_>,
) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = desktop.machine.connect(VLC_PORT).await?;
    let (mut sender, driving) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer.
    tokio::spawn(driving);
    let who = format!("Basic {}", STANDARD.encode(":password"));
    let request = hyper::Request::get("/requests/status.xml")
        .header(hyper::header::HOST, format!("127.0.0.1:{VLC_PORT}"))
        .header(hyper::header::AUTHORIZATION, who)
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    if response.status() != hyper::StatusCode::OK {
        return Ok(None);
    }
    let body = Limited::new(response.into_body(), MAX_STATUS_BYTES);
    Ok(Some(body.collect().await?.to_bytes().to_vec()))
}

/// Kinds of videos that OSWorld asks for twice.
const TWICE: &str = "3gp 3gpp 3gpp2 avi divx dv fli flv mp2t mp4 mp4v-es mpeg mpeg-system msvideo \
    ogg quicktime vnd.divx vnd.mpegurl vnd.rn-realvideo webm x-anim x-avi x-flc x-fli x-flv x-m4v \
    x-matroska x-mpeg x-mpeg-system x-mpeg2 x-ms-asf x-ms-asf-plugin x-ms-asx x-ms-wm x-ms-wmv \
    x-ms-wmx x-ms-wvx x-msvideo x-nsv x-ogm";

/// Those that follow, and how often.
const THEN: [(&str, usize); 3] = [("x-ogm+ogg", 1), ("x-theora", 2), ("x-theora+ogg", 2)];

/// `get_default_video_player`: what opens most kinds of videos, the first of several.
pub(super) async fn default_video_player(desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    let kinds = TWICE.split_whitespace().map(|kind| (kind, 2)).chain(THEN);
    let mut players: Vec<(String, usize)> = Vec::new();
    for (kind, times) in kinds {
        let kind = format!("video/{kind}");
        let command = ["xdg-mime", "query", "default", kind.as_str()];
        let command = CommandLine {
            command: OneOrMany::Many(command.map(str::to_owned).into()),
            shell: false,
        };
        let output = commands::run(desktop, &command).await?;
        let player = output.map(|output| output.stdout).unwrap_or_default();
        match players.iter_mut().find(|(known, _)| *known == player) {
            _ if player.is_empty() => {}
            Some((_, count)) => *count += times,
            None => players.push((player, times)),
        }
    }
    // `max_by_key` would take the last of several.
    let most = players.iter().map(|(_, count)| *count).max();
    let most = players.iter().find(|(_, count)| Some(*count) == most);
    Ok(most.map_or(value("unknown"), |(player, _)| value(player.as_str())))
}
