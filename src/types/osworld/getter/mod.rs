//! Getters: what an evaluator reads of a desktop, or holds that against, with parameters.
//!
//! How a getter reads is the evaluator's business. Source: OSWorld as in
//! `assets/osworld/README.md`, `desktop_env/evaluators/getters`.

mod parameters;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use parameters::{
    CommandLine, Dest, DriveFiles, DrivePath, FileToGet, Files, GotoPrefix, HtmlCategory,
    HtmlParse, RecreationSelector, RelativeTime, SlidePart, TablePart, TableType, TimeSpan,
    UrlParse, UrlPart, UrlPartForm, WebsiteAction, WebsiteInfo,
};

use super::{FileName, TaskFault, names, typed};

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
        path: FileName,
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
        /// What the file is.
        file_type: TableType,
        /// Which part.
        file_content: TablePart,
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
        dest: FileName,
    },
    /// Files of a Google Drive.
    #[serde(rename = "googledrive_file")]
    GoogleDriveFile(DriveFiles),
    /// A part of a page of recreation.gov.
    #[serde(rename = "gotoRecreationPage_and_get_html_content")]
    RecreationPage {
        /// How it is found.
        selector: RecreationSelector,
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
        dest: FileName,
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
        dest: FileName,
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
