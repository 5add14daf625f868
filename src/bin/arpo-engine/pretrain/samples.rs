//! What the base agent is cloned on: screenshots with things to point at and read, and
//! trajectories of the expert with mistakes to recover from. Made from a seed, without tensors.
//!
//! Invariant: a sample is a function of (seed, kind); nothing here reads a clock or a global.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use arpo::action::{Space, print_reply};
use arpo::config::PromptStyle;
use arpo::env::simulated::suite::{self, Family, POOL_FIRST, Suite};
use arpo::env::simulated::{Desktop, Target, expert};
use arpo::prompt::{Content, Message, PromptBuilder, Role, TurnEnd};
use arpo::screen::{PixelValues, preprocess};
use arpo::types::{Action, Point, Task};

use crate::pretrain::PretrainError;
use crate::pretrain::vocabulary::{IM_END, Vocabulary, coordinate_space};

/// What stands before a screenshot that is to be pointed at and read.
const GROUND: &str = "Ground:\n";
/// Most screenshots of a cloned trajectory; longer ones are cut.
const MAX_STEPS: usize = 10;
/// Most targets named on one screenshot.
const MAX_TARGETS: usize = 8;
/// Most facts read off one screenshot.
const MAX_FACTS: usize = 4;
/// Most targets read by position on one screenshot.
const MAX_READINGS: usize = 3;
/// Side of the square of pixels, as the model sees them, that becomes one token.
const CELL_PX: u32 = 28;
/// Probability that a step of a trajectory is a mistake, by the trajectory's number.
const MISTAKES: [f64; 4] = [0.0, 0.0, 0.15, 0.3];

/// What a token of the loss says; accuracies are kept apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Not in the loss.
    Nothing,
    /// Words and syntax of a trajectory's reply.
    Reply,
    /// A coordinate in a trajectory's reply.
    ReplyPoint,
    /// A coordinate of a named target.
    Point,
    /// The name of a target at a given place.
    Reading,
    /// `on`, `missing` and the like.
    Fact,
}

/// Something to be told from the features of one merged patch.
#[derive(Clone, Debug, PartialEq)]
pub struct CellLabel {
    /// Index of the merged patch within the sample's images, row by row, image by image.
    pub cell: usize,
    /// Tokens of the target's phrase.
    pub words: Vec<u32>,
    /// Tokens of its column and row in pixels.
    pub point: [u32; 2],
}

/// A word whose place is to be known by its state in the middle of the text model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Index of the word's last token.
    pub at: usize,
    /// Tokens of its column and row in pixels.
    pub point: [u32; 2],
}

/// One row of a batch.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Token ids, `[seq]`.
    pub ids: Vec<u32>,
    /// What each token says, `[seq]`; all but `Nothing` are in the loss.
    pub says: Vec<Says>,
    /// Its screenshots in order.
    pub images: Vec<PixelValues>,
    /// What can be told from single merged patches.
    pub cells: Vec<CellLabel>,
    /// Words whose places are to be known.
    pub pointers: Vec<Pointer>,
    /// Turns as ranges of tokens, `[start, end)`, for accuracies of whole replies.
    pub replies: Vec<(usize, usize)>,
}

/// What samples are made with.
pub struct Maker<'a> {
    /// Tells coordinates among tokens.
    pub vocabulary: &'a Vocabulary,
    /// Turns conversations into tokens, as in rollouts.
    pub prompts: &'a PromptBuilder,
}

impl Maker<'_> {
    /// A screenshot somewhere in an episode, with nothing but what its merged patches show.
    pub fn looking(&self, seed: u64) -> Result<Sample, PretrainError> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let desktop = random_desktop(&mut rng)?;
        let space = coordinate_space(self.prompts.processor(), desktop.screen_size())?;
        let mut writer = Writer::new(self, space);
        writer.screenshot(&desktop)?;
        Ok(writer.sample)
    }

    /// A screenshot somewhere in an episode, with targets to point at, targets to read and
    /// facts.
    pub fn grounding(&self, seed: u64) -> Result<Sample, PretrainError> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let desktop = random_desktop(&mut rng)?;
        let size = desktop.screen_size();
        let mut writer = Writer::new(self, coordinate_space(self.prompts.processor(), size)?);
        let (words, image) = (Content::Text(GROUND.to_owned()), Content::Image(size));
        let request = Message {
            role: Role::User,
            content: vec![words, image],
        };
        let opening = self.prompts.opening(PromptStyle::Tiny, "", size);
        let messages = [opening[0].clone(), request];
        let piece = self.prompts.build(&messages, TurnEnd::OpenReply)?;
        writer.prompt(&piece.ids);
        writer.screenshot(&desktop)?;
        writer.lines(&desktop, &mut rng)?;
        Ok(writer.sample)
    }

    /// A trajectory of the expert on a task of a trained family. `number` decides how many
    /// mistakes it has; the mistakes are not in the loss, the recoveries are.
    pub fn trajectory(&self, seed: u64, number: u64) -> Result<Sample, PretrainError> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let family = random_family(&mut rng);
        let task = suite::task(family.name, rng.random_range(0..POOL_FIRST))?;
        let mistakes = MISTAKES[(number % MISTAKES.len() as u64) as usize];
        self.demonstrate(&task, mistakes, &mut rng)
    }

    /// The expert's trajectory on `task`, each step a mistake with probability `mistakes`.
    pub fn demonstrate(
        &self,
        task: &Task,
        mistakes: f64,
        rng: &mut Pcg64Mcg,
    ) -> Result<Sample, PretrainError> {
        let mut desktop = Desktop::from_task(task)?;
        let size = desktop.screen_size();
        let mut writer = Writer::new(self, coordinate_space(self.prompts.processor(), size)?);
        for step in 0..MAX_STEPS {
            let piece = if step == 0 {
                self.prompts
                    .first(PromptStyle::Tiny, &task.instruction, size)?
            } else {
                self.prompts.next(size)?
            };
            writer.prompt(&piece.ids);
            writer.screenshot(&desktop)?;
            let right = expert::next(&desktop, task);
            let action = if rng.random_bool(mistakes) {
                let (thought, action) = mistaken(&desktop, &right, rng);
                writer.reply(&thought, &action, false)?;
                action
            } else {
                writer.reply(&right.thought, &right.action, true)?;
                right.action
            };
            if action.is_terminal() {
                break;
            }
            desktop.apply(&action);
        }
        Ok(writer.sample)
    }
}

/// A family that the base agent may learn.
fn random_family(rng: &mut Pcg64Mcg) -> &'static Family {
    let trained: Vec<&Family> = suite::families(Suite::Compact)
        .iter()
        .filter(|family| family.trained)
        .collect();
    trained.choose(rng).expect("the suite has trained families")
}

/// A desktop up to four steps, right or wrong, into an episode.
fn random_desktop(rng: &mut Pcg64Mcg) -> Result<Desktop, PretrainError> {
    let family = random_family(rng);
    let task = suite::task(family.name, rng.random_range(0..POOL_FIRST))?;
    let mut desktop = Desktop::from_task(&task)?;
    for _ in 0..rng.random_range(0..=4) {
        let action = if rng.random_bool(0.5) {
            expert::next(&desktop, &task).action
        } else {
            expert::plausible_mistake(&desktop, rng)
        };
        desktop.apply(&action);
    }
    Ok(desktop)
}

/// A wrong step in the words a policy would have for it: half of the time it means the wrong
/// thing, else it misses what it means.
fn mistaken(desktop: &Desktop, right: &expert::Expert, rng: &mut Pcg64Mcg) -> (String, Action) {
    let action = expert::plausible_mistake(desktop, rng);
    let meant = match &action {
        Action::Click { at } if rng.random_bool(0.5) => desktop
            .targets()
            .into_iter()
            .rfind(|target| target.center == *at)
            .map(|target| target.phrase),
        _ => None,
    };
    (meant.unwrap_or_else(|| right.thought.clone()), action)
}

/// A sample being written.
struct Writer<'a> {
    maker: &'a Maker<'a>,
    space: Space,
    sample: Sample,
    merged_before: usize,
}

impl<'a> Writer<'a> {
    fn new(maker: &'a Maker<'a>, space: Space) -> Self {
        Self {
            maker,
            space,
            sample: Sample {
                ids: Vec::new(),
                says: Vec::new(),
                images: Vec::new(),
                cells: Vec::new(),
                pointers: Vec::new(),
                replies: Vec::new(),
            },
            merged_before: 0,
        }
    }

    /// Appends tokens outside the loss.
    fn prompt(&mut self, ids: &[u32]) {
        self.sample.ids.extend_from_slice(ids);
        let len = self.sample.ids.len();
        self.sample.says.resize(len, Says::Nothing);
    }

    /// Appends text whose tokens say what `says` makes of them.
    fn append(&mut self, text: &str, says: impl Fn(u32) -> Says) -> Result<(), PretrainError> {
        for id in self.maker.prompts.encode(text)? {
            self.sample.ids.push(id);
            self.sample.says.push(says(id));
        }
        Ok(())
    }

    /// Takes the picture whose placeholders were appended and notes what its merged patches
    /// show.
    fn screenshot(&mut self, desktop: &Desktop) -> Result<(), PretrainError> {
        let processor = self.maker.prompts.processor();
        let pixels = preprocess(&desktop.render(), processor)?;
        let [_, rows, columns] = pixels.grid_thw;
        let merge = i64::from(processor.merge_size);
        let (rows, columns) = ((rows / merge) as usize, (columns / merge) as usize);
        for target in desktop.targets() {
            self.cell_label(&target, columns)?;
        }
        self.merged_before += rows * columns;
        self.sample.images.push(pixels);
        Ok(())
    }

    /// Notes which merged patch the middle of a target falls into.
    fn cell_label(&mut self, target: &Target, columns: usize) -> Result<(), PretrainError> {
        let (x, y) = self.point(target.center);
        let vocabulary = self.maker.vocabulary;
        if let (Some(column), Some(row)) =
            (vocabulary.coordinate_id(x), vocabulary.coordinate_id(y))
        {
            let cell = (y / CELL_PX) as usize * columns + (x / CELL_PX) as usize;
            self.sample.cells.push(CellLabel {
                cell: self.merged_before + cell,
                words: self.maker.prompts.encode(&target.phrase)?,
                point: [column, row],
            });
        }
        Ok(())
    }

    /// A place of the screen as the model writes it.
    fn point(&self, at: Point) -> (u32, u32) {
        self.space.to_model(at)
    }

    /// Notes that the place of the word at `at` is known.
    fn pointer(&mut self, at: usize, (x, y): (u32, u32)) {
        let vocabulary = self.maker.vocabulary;
        if let (Some(column), Some(row)) =
            (vocabulary.coordinate_id(x), vocabulary.coordinate_id(y))
        {
            let point = [column, row];
            self.sample.pointers.push(Pointer { at, point });
        }
    }

    /// Appends a reply and its end token.
    fn reply(&mut self, thought: &str, action: &Action, right: bool) -> Result<(), PretrainError> {
        let text = print_reply(thought, std::slice::from_ref(action), &self.space);
        let start = self.sample.ids.len();
        let (talk, call) = text.split_at(text.rfind("Action: ").unwrap_or(0));
        let said = if right { Says::Reply } else { Says::Nothing };
        self.append(talk, |_| said)?;
        if let Action::Click { at } | Action::LeftDouble { at } | Action::Drag { from: at, .. } =
            action
            && right
        {
            // The token before the line break.
            self.pointer(self.sample.ids.len() - 2, self.point(*at));
        }
        let vocabulary = self.maker.vocabulary;
        let typed = matches!(action, Action::Type { .. });
        self.append(call, |id| match vocabulary.coordinate(id) {
            Some(_) if right && !typed => Says::ReplyPoint,
            Some(_) | None => said,
        })?;
        self.sample.ids.push(IM_END);
        self.sample.says.push(said);
        if right {
            self.sample.replies.push((start, self.sample.ids.len()));
        }
        Ok(())
    }

    /// Appends what can be pointed at, read and known on a screenshot.
    fn lines(&mut self, desktop: &Desktop, rng: &mut Pcg64Mcg) -> Result<(), PretrainError> {
        let nothing = |_| Says::Nothing;
        let mut targets = desktop.targets();
        targets.shuffle(rng);
        for target in targets.iter().take(MAX_TARGETS) {
            let (x, y) = self.point(target.center);
            self.append(&format!("Thought: {}", target.phrase), nothing)?;
            self.pointer(self.sample.ids.len() - 1, (x, y));
            self.append("\nAction: click(start_box='(", nothing)?;
            self.append(&x.to_string(), |_| Says::Point)?;
            self.append(",", nothing)?;
            self.append(&y.to_string(), |_| Says::Point)?;
            self.append("')\n", nothing)?;
        }
        targets.shuffle(rng);
        for target in targets.iter().take(MAX_READINGS) {
            let (x, y) = self.point(target.center);
            self.append(
                &format!("Action: click(start_box='({x},{y})')\nThought: "),
                nothing,
            )?;
            self.append(&target.phrase, |_| Says::Reading)?;
            self.append("\n", nothing)?;
        }
        let mut facts = desktop.facts();
        facts.shuffle(rng);
        for fact in facts.iter().take(MAX_FACTS) {
            self.append(&format!("Thought: {} is", fact.subject), nothing)?;
            self.append(&format!(" {}", fact.value), |_| Says::Fact)?;
            self.append("\n", nothing)?;
        }
        Ok(())
    }
}
