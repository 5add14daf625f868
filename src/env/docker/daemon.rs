//! What is asked of a Docker daemon, each question with a deadline and its failure in words.
//!
//! Over a Unix socket alone: what a daemon elsewhere publishes on its loopback is out of reach.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ImageInspect, SystemInfo,
};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    StatsOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures::{Stream, StreamExt};

/// Where the daemon listens if nobody says otherwise.
const SOCKET: &str = "/var/run/docker.sock";

/// How long the daemon is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For what it only looks up.
    pub quick: Duration,
    /// For what it does: a container's layers are made, its processes killed, its disk removed.
    pub slow: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            quick: Duration::from_secs(15),
            slow: Duration::from_secs(90),
        }
    }
}

/// For the first byte of what is followed without an end.
const STREAM_S: u64 = 120;

/// The newest protocol that is asked for; an older daemon gets its own.
const PROTOCOL: &bollard::ClientVersion = bollard::API_DEFAULT_VERSION;

/// Why the daemon did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DaemonError {
    /// Nobody answers.
    #[error("cannot {what}: the Docker daemon is out of reach: {reason}")]
    Unreachable {
        /// What was asked.
        what: &'static str,
        /// The connection's words.
        reason: String,
    },
    /// It says no.
    #[error("cannot {what}: the Docker daemon says ({status}): {told}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Its HTTP status.
        status: u16,
        /// Its words.
        told: String,
    },
    /// It says nothing; nobody knows what came of it.
    #[error("cannot {what}: the Docker daemon did not answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// What was asked.
        what: &'static str,
        /// How long was waited.
        after: Duration,
    },
}

impl DaemonError {
    fn of(what: &'static str, error: &Error) -> Self {
        match error {
            Error::DockerResponseServerError {
                status_code,
                message,
            } => Self::Refused {
                what,
                status: *status_code,
                told: crate::env::lines::plain(message.as_bytes()),
            },
            Error::RequestTimeoutError => Self::TimedOut {
                what,
                after: Duration::from_secs(STREAM_S),
            },
            other => Self::Unreachable {
                what,
                reason: crate::env::lines::plain(crate::http::with_causes(other).as_bytes()),
            },
        }
    }

    /// Whether what was asked about is not there.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether it is what was asked for already.
    fn is_under_way(&self) -> bool {
        matches!(self, Self::Refused { status: 409, told, .. } if told.contains("already in progress"))
    }
}

/// The socket that `DOCKER_HOST` means, or the usual one.
pub fn socket_of(docker_host: Option<&str>) -> Result<PathBuf, String> {
    match docker_host.map(str::trim) {
        None | Some("") => Ok(PathBuf::from(SOCKET)),
        Some(host) => match host.strip_prefix("unix://") {
            Some(path) if path.starts_with('/') => Ok(PathBuf::from(path)),
            _ => Err(format!(
                "DOCKER_HOST is {host}: machines are reached through ports of this host's \
                 loopback, so that it has to be a Unix socket, unix:///path; run arpo on the \
                 daemon's host, and watch it from here (assets/docs/remote.md)"
            )),
        },
    }
}

/// A daemon that answered.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    client: bollard::Docker,
    deadlines: Deadlines,
}

impl Daemon {
    /// Asks the daemon at the socket which protocol it speaks.
    pub(super) async fn connect(socket: &Path, deadlines: Deadlines) -> Result<Self, DaemonError> {
        const WHAT: &str = "ask for its version";
        let path = socket.to_string_lossy();
        let client = bollard::Docker::connect_with_unix(&path, STREAM_S, PROTOCOL);
        let client = client.map_err(|error| DaemonError::of(WHAT, &error))?;
        let client = within(WHAT, deadlines.quick, client.negotiate_version()).await?;
        Ok(Self { client, deadlines })
    }

    pub(super) async fn info(&self) -> Result<SystemInfo, DaemonError> {
        within("ask what it has", self.deadlines.quick, self.client.info()).await
    }

    /// The image of a name; `None` if there is none.
    pub(super) async fn image(&self, name: &str) -> Result<Option<ImageInspect>, DaemonError> {
        let asked = self.client.inspect_image(name);
        match within("look for the image", self.deadlines.quick, asked).await {
            Err(error) if error.is_absence() => Ok(None),
            found => found.map(Some),
        }
    }

    /// All containers that bear these labels, `key=value` or `key`, whether they run or not.
    pub(super) async fn list(
        &self,
        labels: &[String],
    ) -> Result<Vec<ContainerSummary>, DaemonError> {
        let filters = HashMap::from([("label", labels.to_vec())]);
        let options = ListContainersOptionsBuilder::default();
        let options = options.all(true).filters(&filters).build();
        let asked = self.client.list_containers(Some(options));
        within("list containers", self.deadlines.quick, asked).await
    }

    pub(super) async fn create(&self, body: ContainerCreateBody) -> Result<String, DaemonError> {
        let asked = self.client.create_container(None, body);
        Ok(within("create a container", self.deadlines.slow, asked)
            .await?
            .id)
    }

    pub(super) async fn start(&self, id: &str) -> Result<(), DaemonError> {
        let asked = self.client.start_container(id, None);
        within("start the container", self.deadlines.slow, asked).await
    }

    pub(super) async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, DaemonError> {
        let asked = self.client.inspect_container(id, None);
        within("inspect the container", self.deadlines.quick, asked).await
    }

    /// Kills it and removes it with its volumes; as good where it is gone already.
    pub(super) async fn remove(&self, id: &str) -> Result<(), DaemonError> {
        let options = RemoveContainerOptionsBuilder::default();
        let options = options.v(true).force(true).build();
        let asked = self.client.remove_container(id, Some(options));
        match within("remove the container", self.deadlines.slow, asked).await {
            Err(error) if error.is_absence() || error.is_under_way() => Ok(()),
            outcome => outcome,
        }
    }

    pub(super) async fn pause(&self, id: &str) -> Result<(), DaemonError> {
        within(
            "pause the container",
            self.deadlines.quick,
            self.client.pause_container(id),
        )
        .await
    }

    pub(super) async fn unpause(&self, id: &str) -> Result<(), DaemonError> {
        let asked = self.client.unpause_container(id);
        within("unpause the container", self.deadlines.quick, asked).await
    }

    /// Waits until it does not run any more, for as long as the connection holds.
    pub(super) async fn ended(&self, id: &str) -> Result<(), DaemonError> {
        const WHAT: &str = "wait for the container's end";
        let options = WaitContainerOptionsBuilder::default();
        let options = options.condition("not-running").build();
        let mut answers = Box::pin(self.client.wait_container(id, Some(options)));
        match answers.next().await {
            Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => Err(DaemonError::of(WHAT, &error)),
            None => Err(DaemonError::Unreachable {
                what: WHAT,
                reason: "it hung up".to_owned(),
            }),
        }
    }

    /// What it writes, from its start on, until it ends.
    pub(super) fn logs(&self, id: &str) -> impl Stream<Item = Result<LogOutput, Error>> + use<> {
        let options = LogsOptionsBuilder::default();
        let options = options.follow(true).stdout(true).stderr(true).build();
        self.client.logs(id, Some(options))
    }

    /// Memory that it takes, bytes.
    pub(super) async fn memory_bytes(&self, id: &str) -> Option<u64> {
        let options = StatsOptionsBuilder::default();
        let options = options.stream(false).one_shot(true).build();
        let mut answers = Box::pin(self.client.stats(id, Some(options)));
        let answer = tokio::time::timeout(self.deadlines.quick, answers.next()).await;
        answer.ok()??.ok()?.memory_stats?.usage
    }
}

async fn within<T>(
    what: &'static str,
    limit: Duration,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, DaemonError> {
    match tokio::time::timeout(limit, asked).await {
        Ok(outcome) => outcome.map_err(|error| DaemonError::of(what, &error)),
        Err(_) => Err(DaemonError::TimedOut { what, after: limit }),
    }
}
