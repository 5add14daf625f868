//! The loop: takes in what happens, draws when something changed and the line has room.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc as async_mpsc;

use crate::bus::{CommandSender, Player};
use crate::event::Command;
use crate::tui::app::App;
use crate::tui::desk::PictureDesk;
use crate::tui::draw::Drawn;
use crate::tui::feed::Wake;
use crate::tui::gate::Gate;
use crate::tui::outlet::{self, Reader};
use crate::tui::picture::LineState;
use crate::tui::run::TuiError;
use crate::tui::term::{
    ASK, ASK_CELL, Link, LinkFigures, Pace, Reply, TerminalEvent, depth_of_brand,
};
use crate::tui::terminal::{ConsoleTerminal, room};
use crate::tui::theme::{ColorDepth, Role, Theme};
use crate::tui::update::{Effect, Exit, Input, update};
use crate::tui::work::Worker;

/// Inputs taken in before a draw at most, so that a flood cannot starve the screen.
const DRAIN: usize = 4096;
/// The console's clock ticks at least this often.
const TICK: Duration = Duration::from_millis(250);
/// Answers are waited for so long, ms, before the terminal is given back.
const QUIET_MS: f64 = 200.0;
/// Figures of the line change on the screen at most this often, ms.
const FIGURES_MS: f64 = 1_000.0;

/// Everything the loop holds.
pub(super) struct Console {
    app: App,
    terminal: ConsoleTerminal,
    desk: PictureDesk,
    hands: Hands,
    /// Name of the theme at the start; the terminal's answers may refine it.
    theme: String,
    link: Link,
    started: Instant,
    /// What the last draw left behind.
    drawn: Drawn,
    /// What the next draw is for.
    need: Need,
    /// When the next draw is due that no key asks for, ms.
    next_draw_ms: f64,
    /// When the line's figures were last renewed, ms.
    figures_ms: f64,
    /// Whether the probe's answers were made use of.
    is_settled: bool,
    /// What is done once the line is quiet, and by when at the latest, ms.
    parting: Option<(Parting, f64)>,
}

/// What the loop asks of others.
pub(super) struct Hands {
    /// Commands for the engine, with this console's numbers for them.
    pub(super) requests: async_mpsc::Sender<(u64, Command)>,
    /// The lease, where several consoles may write.
    pub(super) commands: Option<CommandSender>,
    /// The time line of a recorded run.
    pub(super) player: Option<Player>,
    /// Work on files and pictures that must not be done while drawing.
    pub(super) files: Worker,
    /// Where the thread that reads the terminal waits while another program has it.
    pub(super) gate: Arc<Gate>,
}

/// Giving the terminal back. Answers that are on their way would be typed into the shell.
#[derive(Clone, Debug)]
enum Parting {
    Suspend,
    Leave(Exit),
    /// To the operator's pager or editor, for this file.
    Read(PathBuf, Reader),
}

/// Why to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Nothing changed.
    None,
    /// The run went on.
    News,
    /// The operator did something and watches for it.
    Echo,
}

/// What comes of an input.
enum Next {
    Go,
    Draw(Need),
    Leave(Exit),
}

impl Console {
    pub(super) fn new(
        app: App,
        terminal: ConsoleTerminal,
        desk: PictureDesk,
        hands: Hands,
        theme: String,
    ) -> Self {
        Self {
            app,
            terminal,
            desk,
            hands,
            theme,
            link: Link::default(),
            started: Instant::now(),
            drawn: Drawn::default(),
            need: Need::Echo,
            next_draw_ms: 0.0,
            figures_ms: f64::NEG_INFINITY,
            is_settled: false,
            parting: None,
        }
    }

    /// Runs until the operator leaves or the terminal is gone.
    pub(super) fn run(&mut self, inbox: &Receiver<Wake>) -> Result<Exit, TuiError> {
        self.measure_room();
        let probe = self.app.ui.terminal.environment.probe();
        self.terminal.painter().command(probe);
        loop {
            if let Some(exit) = self.part_if_quiet()? {
                return Ok(exit);
            }
            self.write_if_due();
            let first = match inbox.recv_timeout(self.patience()) {
                Ok(wake) => Some(wake),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Detached),
            };
            let ticked = Input::Clock(self.now_ms() as u64);
            if update(&mut self.app, ticked).dirty {
                self.need = self.need.max(Need::News);
            }
            let more = std::iter::from_fn(|| inbox.try_recv().ok()).take(DRAIN);
            for wake in first.into_iter().chain(more) {
                match self.take_in(wake) {
                    Next::Go => {}
                    Next::Draw(need) => self.need = self.need.max(need),
                    Next::Leave(exit) => return Ok(exit),
                }
            }
            self.use_answers();
            self.tend_pictures();
        }
    }

    /// Gives the terminal back as soon as no answer is awaited.
    fn part(&mut self, parting: Parting) {
        if self.parting.is_none() {
            self.parting = Some((parting, self.now_ms() + QUIET_MS));
        }
    }

    fn part_if_quiet(&mut self) -> Result<Option<Exit>, TuiError> {
        let Some((_, due_ms)) = self.parting else {
            return Ok(None);
        };
        let is_quiet = self.link.unanswered_bytes() == 0 && !self.terminal.is_busy();
        if !is_quiet && self.now_ms() < due_ms {
            return Ok(None);
        }
        match self.parting.take() {
            Some((Parting::Leave(exit), _)) => return Ok(Some(exit)),
            Some((Parting::Suspend, _)) => self.suspend()?,
            Some((Parting::Read(path, with), _)) => self.read(&path, with)?,
            None => {}
        }
        self.need = Need::Echo;
        Ok(None)
    }

    fn now_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1_000.0
    }

    /// How long nothing needs to be done unless something happens.
    fn patience(&self) -> Duration {
        let now_ms = self.now_ms();
        let mut due_ms = match self.parting {
            Some((_, due_ms)) => Some(due_ms),
            None => self.link.due_ms(),
        };
        // A busy writer tells when it is done.
        let has_need = self.need != Need::None || self.desk.has_something();
        if has_need && self.parting.is_none() && !self.terminal.is_busy() {
            let draw_ms = match self.need {
                Need::News if !self.desk.has_something() => self.next_draw_ms,
                _ => now_ms,
            };
            let free_ms = self.link.free_ms(now_ms);
            let ready_ms = free_ms.map(|free_ms| free_ms.max(draw_ms));
            due_ms = due_ms.into_iter().chain(ready_ms).reduce(f64::min);
        }
        let wait_ms = due_ms.map_or(f64::INFINITY, |due_ms| (due_ms - now_ms).max(0.0));
        // Rounded up, so that what is due is due when it ends.
        TICK.min(Duration::from_millis(wait_ms.min(1e6).ceil() as u64))
    }

    /// Draws and writes, if there is a reason to and the terminal has room.
    fn write_if_due(&mut self) {
        let now_ms = self.now_ms();
        if self.parting.is_some() {
            return;
        }
        if self.link.look(now_ms) && !self.terminal.is_busy() {
            self.terminal.send(ASK.to_vec());
        }
        if self.terminal.is_busy() || !self.link.has_room(now_ms) {
            return;
        }
        self.renew_figures(now_ms);
        let is_due = match self.need {
            Need::None => false,
            Need::News => now_ms >= self.next_draw_ms,
            Need::Echo => true,
        };
        if is_due {
            self.draw();
            self.need = Need::None;
            self.next_draw_ms = now_ms + self.link.text_ms() as f64;
        }
        let (pictures, redraws) = self.desk.send(&mut self.app, &self.drawn, now_ms);
        if redraws {
            self.need = Need::Echo;
        }
        let mut frame = self.terminal.painter().frame(&pictures);
        if !frame.is_empty() {
            frame.extend_from_slice(ASK);
            self.link.sent(now_ms, frame.len());
            self.terminal.send(frame);
        }
    }

    fn draw(&mut self) {
        self.drawn = self.terminal.draw(&self.app);
        let painter = self.terminal.painter();
        self.desk.note_drawn(&mut self.app, &self.drawn, painter);
    }

    fn tend_pictures(&mut self) {
        let line = LineState {
            goodput: self.link.goodput(),
            is_bound: self.link.is_goodput_a_bound(),
            queueing_ms: self.link.queueing_ms(),
            answers: self.link.answers(),
        };
        let now_ms = self.now_ms();
        if self.desk.tick(&mut self.app, &self.drawn, now_ms, line) {
            self.need = self.need.max(Need::News);
        }
    }

    fn renew_figures(&mut self, now_ms: f64) {
        let is_known = self.link.round_trip_ms().is_some() || self.link.pace() == Pace::Time;
        if !is_known || now_ms < self.figures_ms + FIGURES_MS {
            return;
        }
        self.figures_ms = now_ms;
        let answers = self.link.pace() == Pace::Answers;
        let figures = LinkFigures {
            round_trip_ms: self
                .link
                .round_trip_ms()
                .filter(|_| answers)
                .map(two_digits),
            goodput: self.link.goodput().map(two_digits),
            is_bound: self.link.is_goodput_a_bound(),
            is_degraded: self.app.ui.terminal.shows_pictures() && self.desk.is_degraded(),
        };
        update(&mut self.app, Input::Link(figures));
    }

    /// Once the terminal answered the probe: its colors, its background, how it takes frames.
    fn use_answers(&mut self) {
        let facts = &self.app.ui.terminal;
        if self.is_settled || !facts.is_settled {
            return;
        }
        self.is_settled = true;
        self.need = self.need.max(Need::News);
        tracing::info!(
            brand = facts.answers.brand,
            pictures = %facts.graphics.focus,
            tiles = %facts.graphics.tiles,
            why = facts.why,
            answers = facts.raw.join(" "),
            "the terminal answered"
        );
        let synchronized = !facts.answers.lacks_sync();
        let depth = self.app.ui.theme.depth();
        let brand = facts.answers.brand.as_deref().and_then(depth_of_brand);
        let better = brand.filter(|known| depth != ColorDepth::None && *known > depth);
        let is_light = self.theme == "default" && facts.answers.is_light() == Some(true);
        let name = if is_light { "light" } else { &self.theme };
        if better.is_some() || is_light {
            let depth = better.unwrap_or(depth);
            if let Ok(theme) = Theme::built_in(name, depth) {
                self.app.ui.theme = theme;
                self.app.ui.terminal.environment.depth = depth;
            }
        }
        self.terminal.painter().set_synchronized(synchronized);
    }

    fn measure_room(&mut self) {
        let room = room();
        self.app.ui.terminal.window_cell_px = room.cell_px;
        update(&mut self.app, Input::Resize(room.cells.0, room.cells.1));
    }

    fn take_in(&mut self, wake: Wake) -> Next {
        let mut need = Need::News;
        let input = match wake {
            Wake::Input(input) => input,
            Wake::Terminal(event) => {
                need = Need::Echo;
                match self.translate(event) {
                    Some(input) => input,
                    None => return Next::Go,
                }
            }
            Wake::Encoded(made) => {
                self.desk.take(&mut self.app, made);
                return Next::Go;
            }
            Wake::Resized => {
                PictureDesk::forget_drawn(&mut self.app);
                self.measure_room();
                let painter = self.terminal.painter();
                painter.command(ASK_CELL);
                // A size that went and came back, too, has moved what was on the screen.
                painter.repaint();
                return Next::Draw(Need::Echo);
            }
            Wake::Written(Ok(())) => return Next::Go,
            // The terminal is gone or someone wants the console gone; the run goes on.
            Wake::Written(Err(_)) => return Next::Leave(Exit::Detached),
            Wake::Leave => {
                self.part(Parting::Leave(Exit::Detached));
                return Next::Go;
            }
            Wake::Suspend => {
                self.part(Parting::Suspend);
                return Next::Go;
            }
        };
        let outcome = update(&mut self.app, input);
        for effect in outcome.effects {
            self.perform(effect);
        }
        if outcome.dirty {
            Next::Draw(need)
        } else {
            Next::Go
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Leave(exit) => self.part(Parting::Leave(exit)),
            Effect::Send(ticket, command) => {
                if self.hands.requests.try_send((ticket, command)).is_err() {
                    update(&mut self.app, Input::Answer(ticket, None));
                }
            }
            Effect::Suspend => self.part(Parting::Suspend),
            Effect::Copy { what, text } => self.copy(what, &text),
            Effect::Export { path, name, text } => self.export(path.as_deref(), &name, &text),
            Effect::Read { name, text, with } => match outlet::write(None, &name, &text) {
                Ok(path) => self.part(Parting::Read(path, with)),
                Err(error) => self.app.say(Role::Danger, format!("not written: {error}")),
            },
            Effect::Lease(request) => {
                if let Some(commands) = &self.hands.commands {
                    commands.lease(request);
                }
            }
            Effect::Play(request) => {
                if let Some(player) = &self.hands.player {
                    player.send(request);
                }
            }
            Effect::Work(job) => {
                if let Err(reason) = self.hands.files.ask(job) {
                    self.app.say(Role::Danger, reason);
                }
            }
            Effect::Repaint => {
                let painter = self.terminal.painter();
                self.desk.start_over(&mut self.app, painter);
                painter.repaint();
            }
            Effect::Mouse(listens) => self.terminal.set_mouse(listens),
        }
    }

    fn copy(&mut self, what: &'static str, text: &str) {
        let sequence = outlet::clipboard(text);
        if let Some(sequence) = &sequence {
            self.terminal.painter().command(sequence.as_bytes());
        }
        let written = outlet::write(None, "copied.txt", text);
        let (role, said) = outlet::copied(what, sequence.is_some(), written);
        self.app.say(role, said);
    }

    fn export(&mut self, path: Option<&Path>, name: &str, text: &str) {
        let (role, said) = match outlet::write(path, name, text) {
            Ok(path) => (Role::Good, format!("written to {}", path.display())),
            Err(error) => (Role::Danger, format!("not written: {error}")),
        };
        self.app.say(role, said);
    }

    /// Lends the terminal to the operator's pager or editor.
    fn read(&mut self, path: &Path, with: Reader) -> Result<(), TuiError> {
        self.hands.gate.close();
        let read = self.terminal.lend(|| outlet::open(path, with));
        self.hands.gate.open();
        self.taken_back();
        let read = read.map_err(|source| TuiError::Terminal {
            what: "take back",
            source,
        })?;
        if let Err(error) = read {
            self.app.say(Role::Danger, format!("not shown: {error}"));
        }
        Ok(())
    }

    fn suspend(&mut self) -> Result<(), TuiError> {
        let suspended = self
            .terminal
            .suspend()
            .map_err(|source| TuiError::Terminal {
                what: "take back",
                source,
            })?;
        if suspended {
            self.taken_back();
        } else {
            self.app.say(Role::Warning, "no shell to return to");
        }
        self.measure_room();
        Ok(())
    }

    /// After others had the terminal: its pictures were deleted with the rest.
    fn taken_back(&mut self) {
        self.app.ui.slots.clear();
        self.link.restart();
        self.measure_room();
    }

    /// What a terminal's event means, given what was drawn.
    fn translate(&mut self, event: TerminalEvent) -> Option<Input> {
        match event {
            TerminalEvent::Key(key) => Some(Input::Key(key)),
            TerminalEvent::Click(column, row) => {
                self.drawn.target_at(column, row).map(Input::Click)
            }
            TerminalEvent::Wheel(lines) => Some(Input::Wheel(lines)),
            TerminalEvent::Paste(text) => Some(Input::Paste(text)),
            TerminalEvent::Reply(Reply::Alive, _) => {
                let now_ms = self.now_ms();
                self.link.answered(now_ms);
                None
            }
            TerminalEvent::Reply(reply, raw) => Some(Input::Reply(reply, raw)),
        }
    }
}

/// Rounded to two digits: what is shown shall not change without need.
fn two_digits(value: f64) -> u64 {
    let value = value.max(0.0).round();
    let mut unit = 1.0;
    while value / unit >= 100.0 {
        unit *= 10.0;
    }
    ((value / unit).round() * unit) as u64
}
