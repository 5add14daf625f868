//! One desktop of a run: a machine that somebody else started, and that goes on when the run ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::hosts::Host;
use super::{Shared, program};
use crate::env::EnvError;
use crate::env::guest::{Command, Guest, GuestError};
use crate::env::lines::Lines;
use crate::env::machine::{Connection, Machine, MachineNews, MachineState, Reporter, over};
use crate::env::readiness::{self, Patience};
use crate::http::with_causes;
use crate::types::MachinePhase;
use crate::types::osworld::PlaceholderValues;

/// For a connection to a port of the machine.
const CONNECT: Duration = Duration::from_secs(10);

/// Pictures after which OSWorld's server is started anew between two episodes, on a machine that
/// nothing reverts: it dies of about 250, and an episode of 100 steps takes as many.
const MAX_PICTURES: u32 = 100;

/// From asking the server to end until it does.
const SERVER_END: Duration = Duration::from_secs(2);

/// Lines of a reverting program that are told.
const MAX_LINES: usize = 200;

/// Says which unit of systemd the server is of; nothing where that would not start it anew.
const UNIT: &str = r#"unit=$(sed -n 's,^0::.*/\([^/]*\.service\)$,\1,p' /proc/self/cgroup)
case "$unit" in ''|user@*) exit;; esac
case "$(systemctl show --property Restart --value "$unit")" in
always|on-failure) echo "$unit";; esac"#;

/// Ends the server, whose child this is, once it has answered.
const END_SERVER: &str = "sleep 1; kill -KILL $PPID";

/// `Machine` of the provider `attached`.
#[derive(Debug)]
pub struct AttachedMachine {
    name: String,
    shared: Arc<Shared>,
    host: Host,
    desktop: u32,
    guest: Guest,
    /// Taken since the server's start, as far as that is known.
    pictures: u32,
    /// Those of them that the guest's own counter still has.
    counted: u32,
    /// `pictures` when it was last said that the server should be started anew.
    told_at: u32,
    state: MachineState,
    reporter: Reporter,
}

impl AttachedMachine {
    /// The machine of a desktop; asks nobody.
    pub(super) fn new(
        shared: Arc<Shared>,
        host: Host,
        desktop: u32,
        reporter: Reporter,
    ) -> Result<Self, EnvError> {
        let name = format!("attached desktop {desktop} ({})", host.written);
        let options = &shared.options;
        let address = host.server().to_string();
        let token = shared.token.as_deref();
        let guest = Guest::with_token(address, token, options.guest.clone());
        let guest = guest.map_err(|error| EnvError::Machine {
            machine: name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            name,
            shared,
            host,
            desktop,
            guest,
            pictures: 0,
            counted: 0,
            told_at: 0,
            state: MachineState::Off,
            reporter,
        })
    }

    async fn begin(&mut self) -> Result<(), String> {
        let shared = self.shared.clone();
        let config = &shared.options.config;
        let limit = Duration::from_secs_f64(config.revert_deadline_s);
        if config.revert_command.is_empty() {
            self.warn_once();
            self.count_pictures();
            let is_due = self.pictures >= MAX_PICTURES && self.guest.loses_clients();
            if is_due && self.end_server().await {
                self.begin_counting();
            }
        } else {
            self.run_revert_command(limit).await?;
            self.begin_counting();
        }
        let patience = Patience {
            limit,
            poll: shared.options.poll,
            probes: config.execute_probes,
            then: "given up, and the episode tried again",
            screen_keys: "env.attached.screen_width and env.attached.screen_height",
        };
        let ready = readiness::wait(&self.guest, &self.reporter, patience).await;
        ready.map_err(|not_ready| not_ready.reason)?;
        self.count_pictures();
        // The guest counts an episode's own from here on.
        self.guest.restarted();
        self.counted = 0;
        Ok(())
    }

    /// Adds what was taken since this was last done, in an episode or waiting for one in vain.
    fn count_pictures(&mut self) {
        let taken = self.guest.screenshots();
        let new = taken.saturating_sub(self.counted);
        self.pictures = self.pictures.saturating_add(new);
        self.counted = taken;
    }

    /// The server is a new one.
    fn begin_counting(&mut self) {
        (self.pictures, self.told_at) = (0, 0);
        self.counted = self.guest.screenshots();
    }

    async fn run_revert_command(&self, limit: Duration) -> Result<(), String> {
        let config = &self.shared.options.config;
        let then = "killed, and the episode tried again";
        let program = &config.revert_command[0];
        self.reporter
            .status(MachinePhase::Restoring, Some(limit), then, program);
        let argv = config.revert_command.iter();
        let argv: Vec<String> = argv
            .map(|part| {
                let part = part.replace("{host}", &self.host.written);
                part.replace("{desktop}", &self.desktop.to_string())
            })
            .collect();
        let printed = program::run(&argv, limit).await;
        let printed = printed.map_err(|reason| format!("env.attached.revert_command: {reason}"))?;
        let mut lines = Lines::default();
        let mut said = lines.take(&printed);
        said.extend(lines.rest());
        for line in said.into_iter().take(MAX_LINES) {
            self.reporter.tell(MachineNews::Said(line));
        }
        Ok(())
    }

    fn warn_once(&self) {
        if !self.shared.was_warned.swap(true, Ordering::Relaxed) {
            let warning = "nothing reverts the attached machines (env.attached.shared_state): each \
                           episode begins with what the one before left";
            tracing::warn!("{warning}");
            self.reporter.tell(MachineNews::Said(warning.to_owned()));
        }
    }

    /// Has the server started anew by its machine's systemd, which ends what it has opened as well:
    /// right between two episodes, and only there; whether it did. A server of no such unit would stay
    /// away, and is left alone until it dies; one that does not answer is waited for as it is.
    async fn end_server(&mut self) -> bool {
        match self.ask_to_end().await {
            Ok(true) => {
                sleep(SERVER_END).await;
                true
            }
            Ok(false) => {
                self.tell_of_its_death();
                false
            }
            Err(reason) => {
                tracing::warn!(
                    machine = self.name,
                    reason,
                    "its server is not asked to end"
                );
                false
            }
        }
    }

    /// Whether the server ends now, to be started anew; why it cannot be asked.
    async fn ask_to_end(&self) -> Result<bool, String> {
        let limit = self.guest.options().deadline;
        let asking = async {
            let unit = self.guest.execute(&Command::shell(UNIT)).await?;
            let is_of_unit = !unit.stdout.trim().is_empty();
            if is_of_unit {
                self.guest.launch(&Command::shell(END_SERVER)).await?;
            }
            Ok::<_, GuestError>(is_of_unit)
        };
        match timeout(limit, asking).await {
            Ok(answered) => answered.map_err(|error| with_causes(&error)),
            Err(_) => Err(format!("no answer within {} s", limit.as_secs_f64())),
        }
    }

    /// Says that nobody but an operator can start the server anew, after so many more pictures.
    fn tell_of_its_death(&mut self) {
        if self.pictures - self.told_at < MAX_PICTURES {
            return;
        }
        self.told_at = self.pictures;
        let warning = format!(
            "{}: its server is no unit of systemd and dies of about 250 pictures, {} of which are \
             taken: start it anew",
            self.name, self.pictures
        );
        tracing::warn!("{warning}");
        self.reporter.tell(MachineNews::Said(warning));
    }

    fn failed(&self, reason: String) -> EnvError {
        EnvError::Machine {
            machine: self.name.clone(),
            reason,
        }
    }
}

#[async_trait]
impl Machine for AttachedMachine {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn revert(&mut self) -> Result<(), EnvError> {
        let begun = self.reporter.begun();
        let outcome = self.begin().await;
        over(begun);
        match outcome {
            Ok(()) => {
                self.state = MachineState::Running;
                self.reporter.status(MachinePhase::Ready, None, "", "");
                Ok(())
            }
            Err(reason) => {
                self.state = MachineState::Broken {
                    reason: reason.clone(),
                };
                self.reporter.status(MachinePhase::Off, None, "", &reason);
                Err(self.failed(reason))
            }
        }
    }

    fn state(&self) -> MachineState {
        self.state.clone()
    }

    fn guest(&self) -> &Guest {
        &self.guest
    }

    /// OSWorld's server ends with every application that it has opened; see `end_server`.
    async fn restart_server(&mut self) -> Result<(), EnvError> {
        Err(self.failed(
            "its server has given as many pictures as it can, and cannot be started anew without \
             ending what it has opened: lower rollout.max_steps, or look less often"
                .to_owned(),
        ))
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError> {
        let unreachable =
            |reason: String| self.failed(format!("port {port} cannot be reached: {reason}"));
        let Some(address) = self.host.outer(port) else {
            let reason = "nothing is said of it: hosts have ports for 5000, 9222, 8006 and 8080";
            return Err(unreachable(reason.to_owned()));
        };
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(unreachable(format!("{address}: {error}"))),
            Err(_) => Err(unreachable(format!(
                "{address} did not answer in {} s",
                CONNECT.as_secs()
            ))),
        }
    }

    fn placeholders(&self) -> PlaceholderValues {
        let config = &self.shared.options.config;
        PlaceholderValues {
            client_password: config.password.clone(),
            screen: config.screen(),
        }
    }

    /// The machine is its owner's, and goes on.
    async fn close(&mut self) -> Result<(), EnvError> {
        self.state = MachineState::Off;
        self.reporter.status(MachinePhase::Off, None, "", "");
        Ok(())
    }
}
