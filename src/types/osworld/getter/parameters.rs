//! Parameters of getters.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::types::OneOrMany;
use crate::types::osworld::FileName;
use crate::types::osworld::setup::truth;

/// Where a getter leaves its file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dest {
    /// Name among the task's files.
    pub dest: FileName,
}

/// One file, or several of which some are given to the metric.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenFiles")]
pub struct Files {
    /// In order; at least one.
    pub files: Vec<FileToGet>,
    /// Indices of those given to the metric, ascending. Several are given as a list.
    pub gives: Vec<usize>,
    /// Puts the time into the file's name, in this form; single files of the desktop only.
    pub time_format: Option<String>,
}

/// A file and the name it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileToGet {
    /// On the desktop, or its address on the web.
    pub path: String,
    /// Name among the task's files.
    pub dest: FileName,
}

/// `Files` as task files have them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFiles {
    path: OneOrMany<String>,
    dest: OneOrMany<String>,
    #[serde(default, deserialize_with = "truth")]
    multi: bool,
    gives: Option<Vec<usize>>,
    #[serde(default, deserialize_with = "truth")]
    time_suffix: bool,
    time_format: Option<String>,
}

impl TryFrom<WrittenFiles> for Files {
    type Error = String;

    fn try_from(written: WrittenFiles) -> Result<Self, String> {
        let paths: Vec<&String> = written.path.iter().collect();
        let dests: Vec<&String> = written.dest.iter().collect();
        let is_list = |one: &OneOrMany<String>| matches!(one, OneOrMany::Many(_));
        if is_list(&written.path) != written.multi || is_list(&written.dest) != written.multi {
            return Err(
                "\"path\" and \"dest\" are lists where \"multi\" is true, else texts".into(),
            );
        }
        if paths.is_empty() || paths.len() != dests.len() {
            return Err(format!(
                "{} of \"path\" and {} of \"dest\"; give as many, and at least one",
                paths.len(),
                dests.len()
            ));
        }
        // OSWorld makes a set of it: order and repetition mean nothing.
        let mut gives = written.gives.unwrap_or_else(|| vec![0]);
        gives.sort_unstable();
        gives.dedup();
        if gives.is_empty() || gives.iter().any(|index| *index >= paths.len()) {
            return Err(format!(
                "\"gives\" has to name files by index, of which there are {}",
                paths.len()
            ));
        }
        let pairs = paths.into_iter().zip(dests);
        let files = pairs.map(|(path, dest)| {
            Ok(FileToGet {
                path: path.clone(),
                dest: dest.clone().try_into()?,
            })
        });
        let files: Result<Vec<FileToGet>, String> = files.collect();
        let format = || {
            written
                .time_format
                .unwrap_or_else(|| "%Y%m%d_%H%M%S".into())
        };
        Ok(Self {
            files: files?,
            gives,
            time_format: written.time_suffix.then(format),
        })
    }
}

/// A program run for what it prints. Nothing is filled in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandLine {
    /// A text that is no shell's is split as a shell would.
    pub command: OneOrMany<String>,
    /// Whether a shell reads it.
    #[serde(default, deserialize_with = "truth")]
    pub shell: bool,
}

/// What stands before the address that Chrome shows without it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GotoPrefix {
    /// OSWorld's own is `https://`.
    #[serde(default = "https")]
    pub goto_prefix: String,
}

fn https() -> String {
    "https://".to_owned()
}

/// Parameters of an address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlParse {
    /// As in `GotoPrefix`.
    #[serde(default = "https")]
    pub goto_prefix: String,
    /// Which to read.
    pub parse_keys: Vec<String>,
    /// Other names for some.
    #[serde(default)]
    pub replace: BTreeMap<String, String>,
    /// Whether values are split at commas.
    #[serde(default, deserialize_with = "truth")]
    pub split_list: bool,
}

/// A part of an address between slashes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlPart {
    /// As in `GotoPrefix`.
    #[serde(default = "https")]
    pub goto_prefix: String,
    /// Which part, from the end where negative.
    #[serde(rename = "partIndex")]
    pub part_index: i64,
    /// Whether what follows a question mark is cut off.
    #[serde(default, rename = "needDeleteId", deserialize_with = "truth")]
    pub need_delete_id: bool,
    /// What is made of it.
    #[serde(rename = "returnType")]
    pub return_type: UrlPartForm,
    /// Its key there.
    pub key: Option<String>,
}

/// What is made of a part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UrlPartForm {
    /// The text itself.
    String,
    /// An object with the text under `key`.
    Json,
}

/// What a table on the desktop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableType {
    /// A spreadsheet of Excel's form.
    Xlsx,
}

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TablePart {
    /// Its last row, as texts.
    LastRow,
}

/// How a part of a page of recreation.gov is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecreationSelector {
    /// By its class.
    Class,
}

/// How parts of a page are found. Which of the maps counts is up to `category`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HtmlParse {
    /// As in `GotoPrefix`.
    #[serde(default = "https")]
    pub goto_prefix: String,
    /// How they are found.
    pub category: HtmlCategory,
    /// By class, the name of each numbered element.
    #[serde(default, rename = "class_multiObject")]
    pub multi_object: Map<String, Value>,
    /// The same of the elements' children.
    #[serde(default, rename = "class_multiObject_child")]
    pub multi_object_child: Map<String, Value>,
    /// By class, texts that some list item has.
    #[serde(default, rename = "class_multiObject_li")]
    pub multi_object_li: Map<String, Value>,
    /// By class, names of the numbered children alone.
    #[serde(default, rename = "class_multiObject_only_child")]
    pub multi_object_only_child: Map<String, Value>,
    /// By class, texts that some element has.
    #[serde(default, rename = "class_multiObject_search_exist")]
    pub multi_object_search_exist: Map<String, Value>,
    /// By class, the name of its first element.
    #[serde(default, rename = "class_singleObject")]
    pub single_object: Map<String, Value>,
    /// By path, the name of an input's value.
    #[serde(default, rename = "inputObject")]
    pub input_object: Map<String, Value>,
    /// By label, the name of its text.
    #[serde(default, rename = "labelObject")]
    pub label_object: Map<String, Value>,
    /// Texts that the address may have, and their names.
    #[serde(default)]
    pub url_include_expected_multichoice: Map<String, Value>,
    /// By path, the name of its text.
    #[serde(default, rename = "xpathObject")]
    pub xpath_object: Map<String, Value>,
    /// Texts that the address may have.
    #[serde(default)]
    pub url_include_expected: Vec<String>,
}

/// How parts of a page are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HtmlCategory {
    /// By classes.
    Class,
    /// By labels.
    Label,
    /// By paths.
    Xpath,
    /// Inputs, by paths.
    Input,
    /// By classes, and what the address says.
    #[serde(rename = "class&url")]
    ClassAndUrl,
}

/// What to read of a live page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebsiteInfo {
    /// How.
    pub action: WebsiteAction,
    /// Where; with `click_and_…`, what to click before.
    pub selector: OneOrMany<String>,
    /// Which attribute.
    pub attribute: Option<String>,
}

/// How to read of a live page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebsiteAction {
    /// The text of an element.
    InnerText,
    /// An attribute of it.
    Attribute,
    /// The text, after clicks that lead there.
    ClickAndInnerText,
    /// The attribute, likewise.
    ClickAndAttribute,
}

/// A part of a slide of a presentation on the desktop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlidePart {
    /// Of the presentation.
    pub ppt_file_path: String,
    /// From 0.
    pub slide_index: usize,
    /// Name for it among the task's files.
    pub dest: FileName,
}

/// Files of a Google Drive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenDriveFiles")]
pub struct DriveFiles {
    /// File with the credentials.
    pub settings_file: String,
    /// In order; at least one.
    pub files: Vec<(DrivePath, FileName)>,
    /// Whether the metric gets a list, be it of one.
    pub as_list: bool,
}

/// How a file on a Google Drive is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrivePath {
    /// By a query for each folder, then one for the file.
    Queries(Vec<String>),
    /// By the names of its folders, then its own.
    Names(Vec<String>),
}

/// `DriveFiles` as task files have them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDriveFiles {
    settings_file: String,
    query: Option<Vec<String>>,
    path: Option<Vec<String>>,
    query_list: Option<Vec<Vec<String>>>,
    path_list: Option<Vec<Vec<String>>>,
    dest: OneOrMany<String>,
}

impl TryFrom<WrittenDriveFiles> for DriveFiles {
    type Error = String;

    fn try_from(written: WrittenDriveFiles) -> Result<Self, String> {
        let as_list = written.query_list.is_some() || written.path_list.is_some();
        let many = |paths: Vec<Vec<String>>, form: fn(Vec<String>) -> DrivePath| {
            paths.into_iter().map(form).collect::<Vec<_>>()
        };
        let one = |path: Vec<String>, form| many(vec![path], form);
        let ways = [
            written.query.map(|path| one(path, DrivePath::Queries)),
            written.path.map(|path| one(path, DrivePath::Names)),
            written
                .query_list
                .map(|paths| many(paths, DrivePath::Queries)),
            written.path_list.map(|paths| many(paths, DrivePath::Names)),
        ];
        let mut given = ways.into_iter().flatten();
        let (Some(paths), None) = (given.next(), given.next()) else {
            return Err("give one of \"query\", \"path\", \"query_list\" and \"path_list\"".into());
        };
        if as_list != matches!(written.dest, OneOrMany::Many(_))
            || paths.is_empty()
            || paths.len() != written.dest.iter().len()
        {
            let reason =
                "\"dest\" is a text for \"query\" and \"path\", for lists a list of as many";
            return Err(reason.into());
        }
        let dests = written
            .dest
            .iter()
            .map(|dest| FileName::try_from(dest.clone()));
        let files = paths.into_iter().zip(dests);
        let files = files.map(|(path, dest)| Ok::<_, String>((path, dest?)));
        Ok(Self {
            settings_file: written.settings_file,
            files: files.collect::<Result<_, _>>()?,
            as_list,
        })
    }
}

/// Rules with dates in them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativeTime {
    /// Which dates, in words such as `next Monday`.
    #[serde(rename = "relativeTime")]
    pub relative_time: TimeSpan,
    /// Of the dates; the desktop's own where it is absent.
    pub timezone: Option<String>,
    /// What the metric gets, with date patterns such as `{Year}`.
    pub expected: Map<String, Value>,
    /// A rule of the metric.
    #[serde(default)]
    pub expect_in_result: bool,
}

/// One date or two.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSpan {
    /// The first.
    pub from: String,
    /// The second.
    pub to: Option<String>,
}
