//! Getters: what an evaluator reads of a desktop, or holds that against, with parameters.
//!
//! How a getter reads is the evaluator's business. Source: OSWorld as in
//! `assets/osworld/README.md`, `desktop_env/evaluators/getters`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::setup::truth;
use super::{TaskFault, names, typed};
use crate::types::OneOrMany;

/// The getters that exist; OSWorld's functions of these names after `get_`.
pub const GETTER_NAMES: [&str; 56] = [
    "accessibility_tree",
    "active_tab_html_parse",
    "active_tab_info",
    "active_tab_url_parse",
    "active_url_from_accessTree",
    "audio_in_slide",
    "background_image_in_slide",
    "bookmarks",
    "cache_file",
    "chrome_appearance_mode_ui",
    "chrome_color_scheme",
    "chrome_font_size",
    "chrome_language",
    "cloud_file",
    "conference_city_in_order",
    "content_from_vm_file",
    "cookie_data",
    "data_delete_automacally",
    "default_search_engine",
    "default_video_player",
    "enable_do_not_track",
    "enable_enhanced_safety_browsing",
    "enable_safe_browsing",
    "enabled_experiments",
    "find_installed_extension_name",
    "find_unpacked_extension_path",
    "gimp_config_file",
    "googledrive_file",
    "gotoRecreationPage_and_get_html_content",
    "history",
    "info_from_website",
    "list_directory",
    "macys_product_url_parse",
    "new_startup_page",
    "number_of_search_results",
    "open_tabs_info",
    "page_info",
    "pdf_from_url",
    "profile_name",
    "replay",
    "rule",
    "rule_relativeTime",
    "shortcuts_on_desktop",
    "time_diff_range",
    "url_dashPart",
    "url_path_parse",
    "vlc_config",
    "vlc_playing_info",
    "vm_command_error",
    "vm_command_line",
    "vm_file",
    "vm_screen_size",
    "vm_terminal_output",
    "vm_wallpaper",
    "vm_window_size",
    "vscode_config",
];

/// Getters that exist and no task of OSWorld uses: their parameters are not typed.
const UNTYPED: [&str; 9] = [
    "chrome_color_scheme",
    "chrome_language",
    "conference_city_in_order",
    "enable_enhanced_safety_browsing",
    "enabled_experiments",
    "macys_product_url_parse",
    "number_of_search_results",
    "replay",
    "time_diff_range",
];

/// One getter with its parameters, in the order of their names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", content = "parameters", rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
pub enum Getter {
    /// The desktop's accessibility tree as XML.
    AccessibilityTree {},
    /// Parts of the page in Chrome's active tab.
    ActiveTabHtmlParse(Box<HtmlParse>),
    /// Title, address and text of the page in Chrome's active tab.
    ActiveTabInfo(GotoPrefix),
    /// Parameters of the active tab's address.
    ActiveTabUrlParse(UrlParse),
    /// The address in Chrome's address bar, by the accessibility tree.
    #[serde(rename = "active_url_from_accessTree")]
    ActiveUrl(GotoPrefix),
    /// A sound in a slide.
    AudioInSlide(SlidePart),
    /// The picture behind a slide.
    BackgroundImageInSlide(SlidePart),
    /// Chrome's bookmarks.
    Bookmarks {},
    /// A file that a set-up step left among the task's files.
    CacheFile {
        /// Its name there.
        path: String,
    },
    /// Whether Chrome is light or dark, by its settings page.
    ChromeAppearanceModeUi {},
    /// Chrome's font sizes.
    ChromeFontSize {},
    /// A file from the web.
    CloudFile(Files),
    /// A part of a spreadsheet on the desktop.
    ContentFromVmFile {
        /// Of the file.
        path: String,
        /// Only `xlsx` exists.
        file_type: String,
        /// Only `last_row` exists.
        file_content: String,
    },
    /// Chrome's cookies.
    CookieData(Dest),
    /// Whether Chrome deletes its data when it is closed.
    #[serde(rename = "data_delete_automacally")]
    DataDeleteAutomatically {},
    /// Chrome's search engine.
    DefaultSearchEngine {},
    /// What opens videos.
    DefaultVideoPlayer {},
    /// Whether Chrome asks not to be tracked.
    EnableDoNotTrack {},
    /// Whether Chrome warns of pages.
    EnableSafeBrowsing {},
    /// Names of Chrome's extensions.
    FindInstalledExtensionName {},
    /// Folders of Chrome's unpacked extensions.
    FindUnpackedExtensionPath {},
    /// A file of GIMP's settings.
    GimpConfigFile {
        /// Its name.
        file_name: String,
        /// Name for it among the task's files.
        dest: String,
    },
    /// Files of a Google Drive.
    #[serde(rename = "googledrive_file")]
    GoogleDriveFile(DriveFiles),
    /// A part of a page of recreation.gov.
    #[serde(rename = "gotoRecreationPage_and_get_html_content")]
    RecreationPage {
        /// Only `class` exists.
        selector: String,
        /// The class.
        class: String,
        /// Which of them; the first where it is absent.
        order: Option<String>,
    },
    /// Chrome's history.
    History(Dest),
    /// Parts of a live page.
    InfoFromWebsite {
        /// Its address.
        url: String,
        /// What to read.
        infos: Vec<WebsiteInfo>,
        /// What to take where the page cannot be read.
        backups: Option<Vec<Value>>,
    },
    /// The files below a folder.
    ListDirectory {
        /// Of the folder.
        path: String,
    },
    /// What Chrome begins with.
    NewStartupPage {},
    /// Titles and addresses of Chrome's tabs.
    OpenTabsInfo {},
    /// Title, address and text of a live page.
    PageInfo {
        /// Its address.
        url: String,
    },
    /// A live page, printed.
    PdfFromUrl {
        /// Its address.
        path: String,
        /// Name for it among the task's files.
        dest: String,
    },
    /// Chrome's profile.
    ProfileName {},
    /// What the file says itself.
    Rule {
        /// In the form that the metric wants.
        rules: Value,
    },
    /// The same with dates that depend on the desktop's clock.
    #[serde(rename = "rule_relativeTime")]
    RuleRelativeTime {
        /// Which dates, and where they go.
        rules: RelativeTime,
    },
    /// Starters on the desktop.
    ShortcutsOnDesktop {},
    /// A part of the active tab's address between slashes.
    #[serde(rename = "url_dashPart")]
    UrlDashPart(UrlPart),
    /// As `active_tab_url_parse`, for a shop's addresses.
    UrlPathParse(UrlParse),
    /// VLC's settings.
    VlcConfig(Dest),
    /// What VLC plays, by its web page.
    VlcPlayingInfo(Dest),
    /// Errors of a program.
    VmCommandError(CommandLine),
    /// Output of a program.
    VmCommandLine(CommandLine),
    /// Files of the desktop.
    VmFile(Files),
    /// Size of the screen.
    VmScreenSize {},
    /// What the terminal in front shows.
    VmTerminalOutput {},
    /// The desktop's picture.
    VmWallpaper(Dest),
    /// Size of a window.
    VmWindowSize {
        /// Class of the window.
        app_class_name: String,
    },
    /// A file that VS Code writes when told a command.
    VscodeConfig {
        /// The command.
        vscode_extension_command: String,
        /// Of the file.
        path: String,
        /// Name for it among the task's files.
        dest: String,
    },
    /// One that no task of OSWorld uses.
    #[serde(skip)]
    Untyped(UntypedGetter),
}

/// A getter whose parameters nobody reads here; OSWorld's own code may.
#[derive(Clone, Debug, PartialEq)]
pub struct UntypedGetter {
    /// Its name.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: Map<String, Value>,
}

/// Where a getter leaves its file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dest {
    /// Name among the task's files.
    pub dest: String,
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
    pub dest: String,
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
        let files = pairs.map(|(path, dest)| FileToGet {
            path: path.clone(),
            dest: dest.clone(),
        });
        let format = || {
            written
                .time_format
                .unwrap_or_else(|| "%Y%m%d_%H%M%S".into())
        };
        Ok(Self {
            files: files.collect(),
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
    pub replace: std::collections::BTreeMap<String, String>,
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
    /// `string`, or `json` for an object with `key`.
    #[serde(rename = "returnType")]
    pub return_type: String,
    /// Its key there.
    pub key: Option<String>,
}

/// How parts of a page are found. Which of the maps counts is up to `category`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HtmlParse {
    /// As in `GotoPrefix`.
    #[serde(default = "https")]
    pub goto_prefix: String,
    /// `class`, `label`, `xpath`, `input` or `class&url`.
    pub category: String,
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

/// What to read of a live page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebsiteInfo {
    /// `inner_text`, `attribute`, `click_and_inner_text` or `click_and_attribute`.
    pub action: String,
    /// Where; with `click_and_…`, what to click before.
    pub selector: OneOrMany<String>,
    /// Which attribute.
    pub attribute: Option<String>,
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
    pub dest: String,
}

/// Files of a Google Drive: exactly one of the four ways to name them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveFiles {
    /// File with the credentials.
    pub settings_file: String,
    /// One file, by a query a folder.
    pub query: Option<Vec<String>>,
    /// One file, by its folders and name.
    pub path: Option<Vec<String>>,
    /// Several, by queries.
    pub query_list: Option<Vec<Vec<String>>>,
    /// Several, by folders and names.
    pub path_list: Option<Vec<Vec<String>>>,
    /// Names among the task's files.
    pub dest: OneOrMany<String>,
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

impl Getter {
    /// Reads a getter; `key` is where in the file it stands.
    pub fn read(written: &Value, key: &str) -> Result<Self, TaskFault> {
        let fault = |reason: &str| TaskFault::new(key, reason);
        let object = written.as_object();
        let mut parameters = object.ok_or_else(|| fault("not an object"))?.clone();
        let kind = parameters.shift_remove("type");
        let kind = kind.as_ref().and_then(Value::as_str);
        let kind = kind.ok_or_else(|| fault("no \"type\", which names the getter"))?;
        let name = names::check("getter", kind, &GETTER_NAMES, &format!("{key}.type"))?;
        if UNTYPED.contains(&name) {
            return Ok(Self::Untyped(UntypedGetter { name, parameters }));
        }
        typed::read(name, Value::Object(parameters), key, "")
    }

    /// Its name in task files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AccessibilityTree { .. } => "accessibility_tree",
            Self::ActiveTabHtmlParse(_) => "active_tab_html_parse",
            Self::ActiveTabInfo(_) => "active_tab_info",
            Self::ActiveTabUrlParse(_) => "active_tab_url_parse",
            Self::ActiveUrl(_) => "active_url_from_accessTree",
            Self::AudioInSlide(_) => "audio_in_slide",
            Self::BackgroundImageInSlide(_) => "background_image_in_slide",
            Self::Bookmarks { .. } => "bookmarks",
            Self::CacheFile { .. } => "cache_file",
            Self::ChromeAppearanceModeUi { .. } => "chrome_appearance_mode_ui",
            Self::ChromeFontSize { .. } => "chrome_font_size",
            Self::CloudFile(_) => "cloud_file",
            Self::ContentFromVmFile { .. } => "content_from_vm_file",
            Self::CookieData(_) => "cookie_data",
            Self::DataDeleteAutomatically { .. } => "data_delete_automacally",
            Self::DefaultSearchEngine { .. } => "default_search_engine",
            Self::DefaultVideoPlayer { .. } => "default_video_player",
            Self::EnableDoNotTrack { .. } => "enable_do_not_track",
            Self::EnableSafeBrowsing { .. } => "enable_safe_browsing",
            Self::FindInstalledExtensionName { .. } => "find_installed_extension_name",
            Self::FindUnpackedExtensionPath { .. } => "find_unpacked_extension_path",
            Self::GimpConfigFile { .. } => "gimp_config_file",
            Self::GoogleDriveFile(_) => "googledrive_file",
            Self::RecreationPage { .. } => "gotoRecreationPage_and_get_html_content",
            Self::History(_) => "history",
            Self::InfoFromWebsite { .. } => "info_from_website",
            Self::ListDirectory { .. } => "list_directory",
            Self::NewStartupPage { .. } => "new_startup_page",
            Self::OpenTabsInfo { .. } => "open_tabs_info",
            Self::PageInfo { .. } => "page_info",
            Self::PdfFromUrl { .. } => "pdf_from_url",
            Self::ProfileName { .. } => "profile_name",
            Self::Rule { .. } => "rule",
            Self::RuleRelativeTime { .. } => "rule_relativeTime",
            Self::ShortcutsOnDesktop { .. } => "shortcuts_on_desktop",
            Self::UrlDashPart(_) => "url_dashPart",
            Self::UrlPathParse(_) => "url_path_parse",
            Self::VlcConfig(_) => "vlc_config",
            Self::VlcPlayingInfo(_) => "vlc_playing_info",
            Self::VmCommandError(_) => "vm_command_error",
            Self::VmCommandLine(_) => "vm_command_line",
            Self::VmFile(_) => "vm_file",
            Self::VmScreenSize { .. } => "vm_screen_size",
            Self::VmTerminalOutput { .. } => "vm_terminal_output",
            Self::VmWallpaper(_) => "vm_wallpaper",
            Self::VmWindowSize { .. } => "vm_window_size",
            Self::VscodeConfig { .. } => "vscode_config",
            Self::Untyped(other) => other.name,
        }
    }
}
