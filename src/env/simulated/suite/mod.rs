//! Task suites: families of tasks, each instance a function of the family and an integer.
//!
//! Instances below `POOL_FIRST` are for cloning the base agent, those from there on for the
//! pool that reinforcement learning trains on, those from `HELD_OUT_FIRST` on for evaluation
//! only. Families that are not `trained` are never cloned either.

mod compact;
mod draft;
mod full;
pub mod words;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::types::{ScreenSize, Task, TaskId, derive_seed};

use draft::Draft;

/// First instance for the pool of reinforcement learning; cloning uses those below.
pub const POOL_FIRST: u64 = 500_000;
/// First instance that nothing is trained on.
pub const HELD_OUT_FIRST: u64 = 1_000_000;

/// A set of families with one kind of desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// One window on 448x336 pixels; the shipped agent's own.
    Compact,
    /// Overlapping windows on 1920x1080 pixels; nothing is trained on it.
    Full,
}

/// Tasks of one kind.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name, unique over all suites' families of one suite.
    pub name: &'static str,
    /// Its application, which is the domain of its tasks.
    pub app: &'static str,
    /// Steps the expert takes at most, the closing one included.
    pub steps: usize,
    /// Whether the right answer is to declare the task infeasible.
    pub infeasible: bool,
    /// Whether the base agent is cloned on it.
    pub trained: bool,
    make: Make,
}

/// Makes one instance.
type Make = fn(&mut Pcg64Mcg) -> Draft;

/// A family that the base agent is cloned on.
const fn family(name: &'static str, app: &'static str, steps: usize, make: Make) -> Family {
    Family {
        name,
        app,
        steps,
        infeasible: false,
        trained: true,
        make,
    }
}

/// The same whose tasks cannot be done.
const fn infeasible(name: &'static str, app: &'static str, make: Make) -> Family {
    Family {
        infeasible: true,
        ..family(name, app, 1, make)
    }
}

/// A family kept out of cloning.
const fn unseen(name: &'static str, app: &'static str, steps: usize, make: Make) -> Family {
    Family {
        trained: false,
        ..family(name, app, steps, make)
    }
}

/// Why there is no such task.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The id is not of the form suite/family/instance.
    #[error("task id {id:?} is not of the form compact/FAMILY/NUMBER or full/FAMILY/NUMBER")]
    Id {
        /// The id.
        id: String,
    },
    /// No suite has a family of this name.
    #[error("no task family is called {name:?}; the nearest name is {nearest:?}")]
    Family {
        /// The name asked for.
        name: String,
        /// A name that exists.
        nearest: &'static str,
    },
}

impl Family {
    /// One of its instances; `suite` is the one the family belongs to.
    pub fn task(&self, suite: Suite, instance: u64) -> Task {
        let name = format!("{}/{}", suite.name(), self.name);
        let path: Vec<u64> = name.bytes().map(u64::from).collect();
        let mut rng = Pcg64Mcg::seed_from_u64(derive_seed(instance, &path));
        let draft = (self.make)(&mut rng);
        let draft = match suite {
            Suite::Compact => draft,
            Suite::Full => full::furnish(&mut rng, draft),
        };
        draft.into_task(suite, self, instance)
    }
}

impl Suite {
    /// Size of its screens in pixels.
    pub const fn screen_size(self) -> ScreenSize {
        match self {
            Suite::Compact => compact::SCREEN,
            Suite::Full => full::SCREEN,
        }
    }

    /// Its name in task ids.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Compact => "compact",
            Suite::Full => "full",
        }
    }

    /// The suite of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Suite::Compact, Suite::Full]
            .into_iter()
            .find(|suite| suite.name() == name)
    }
}

/// All families of a suite.
pub fn families(suite: Suite) -> &'static [Family] {
    match suite {
        Suite::Compact => &compact::FAMILIES,
        Suite::Full => &full::FAMILIES,
    }
}

/// One instance of a family of the compact suite, by name.
pub fn task(family: &str, instance: u64) -> Result<Task, SuiteError> {
    task_of(Suite::Compact, family, instance)
}

/// One instance of a family, by name.
pub fn task_of(suite: Suite, family: &str, instance: u64) -> Result<Task, SuiteError> {
    let families = families(suite);
    let found = families.iter().find(|other| other.name == family);
    let Some(found) = found else {
        let likeness = |other: &&Family| (strsim::jaro(other.name, family) * 1e6) as u64;
        return Err(SuiteError::Family {
            name: family.to_owned(),
            nearest: families.iter().max_by_key(likeness).map_or("", |f| f.name),
        });
    };
    Ok(found.task(suite, instance))
}

/// The task of an id such as `compact/ed_sub/17`.
pub fn task_by_id(id: &TaskId) -> Result<Task, SuiteError> {
    let wrong = || SuiteError::Id { id: id.0.clone() };
    let mut parts = id.0.split('/');
    let (Some(suite), Some(family), Some(instance), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let suite = Suite::by_name(suite).ok_or_else(wrong)?;
    let instance = instance.parse().map_err(|_| wrong())?;
    task_of(suite, family, instance)
}
