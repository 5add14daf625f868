//! Who carries out what OSWorld's tasks name: set-up steps, getters, metrics.
//!
//! The one table behind `arpo tasks check`. A name that is not in it is carried by nobody. A native
//! row says how many cases it was compared with OSWorld's own code on, which a test counts; without
//! any it does not count as native.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::types::osworld::{Getter, OsworldTask, Setup};

/// What a task names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A step that prepares a desktop.
    Setup,
    /// What reads the end state.
    Getter,
    /// What scores it.
    Metric,
}

/// A named part of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// Of which kind.
    pub kind: PartKind,
    /// Its name in task files.
    pub name: &'static str,
}

/// Who carries out a part on real desktops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// This program.
    Native {
        /// Cases in `tests/it/fixtures/differential/KIND/NAME.json`, with what OSWorld's own code
        /// says of them.
        cases: usize,
    },
    /// OSWorld's own code, in the sidecar.
    Sidecar,
    /// Someone, where the operator brings credentials.
    Credentials,
    /// Nobody.
    None,
}

const fn native(cases: usize) -> Carrier {
    Carrier::Native { cases }
}

/// What is carried. Sorted by kind and name.
#[rustfmt::skip]
pub const CARRIED: &[(PartKind, &str, Carrier)] = &[
    (PartKind::Setup, "activate_window", native(8)),
    (PartKind::Setup, "change_wallpaper", native(6)),
    (PartKind::Setup, "chrome_close_tabs", native(11)),
    (PartKind::Setup, "chrome_open_tabs", native(8)),
    (PartKind::Setup, "close_window", native(8)),
    (PartKind::Setup, "command", native(12)),
    (PartKind::Setup, "download", native(10)),
    (PartKind::Setup, "execute", native(22)),
    (PartKind::Setup, "execute_with_verification", native(10)),
    (PartKind::Setup, "googledrive", Carrier::Credentials),
    (PartKind::Setup, "launch", native(16)),
    (PartKind::Setup, "login", Carrier::Credentials),
    (PartKind::Setup, "open", native(7)),
    (PartKind::Setup, "proxy", Carrier::Credentials),
    (PartKind::Setup, "sleep", native(6)),
    (PartKind::Setup, "update_browse_history", native(8)),
    (PartKind::Setup, "upload_file", native(8)),
    (PartKind::Getter, "accessibility_tree", native(4)),
    (PartKind::Getter, "active_tab_html_parse", Carrier::Sidecar),
    (PartKind::Getter, "active_tab_info", Carrier::Sidecar),
    (PartKind::Getter, "active_tab_url_parse", native(26)),
    (PartKind::Getter, "active_url_from_accessTree", native(26)),
    (PartKind::Getter, "audio_in_slide", native(23)),
    (PartKind::Getter, "background_image_in_slide", native(19)),
    (PartKind::Getter, "bookmarks", native(12)),
    (PartKind::Getter, "cache_file", native(5)),
    (PartKind::Getter, "chrome_font_size", native(17)),
    (PartKind::Getter, "cloud_file", native(8)),
    (PartKind::Getter, "content_from_vm_file", Carrier::Sidecar),
    (PartKind::Getter, "cookie_data", native(13)),
    (PartKind::Getter, "data_delete_automacally", native(19)),
    (PartKind::Getter, "default_search_engine", native(19)),
    (PartKind::Getter, "default_video_player", native(10)),
    (PartKind::Getter, "enable_do_not_track", native(22)),
    (PartKind::Getter, "enable_safe_browsing", native(20)),
    (PartKind::Getter, "find_installed_extension_name", native(20)),
    (PartKind::Getter, "find_unpacked_extension_path", native(23)),
    (PartKind::Getter, "gimp_config_file", native(6)),
    (PartKind::Getter, "googledrive_file", Carrier::Credentials),
    (PartKind::Getter, "gotoRecreationPage_and_get_html_content", Carrier::Sidecar),
    (PartKind::Getter, "history", native(14)),
    (PartKind::Getter, "info_from_website", Carrier::Sidecar),
    (PartKind::Getter, "list_directory", native(4)),
    (PartKind::Getter, "new_startup_page", native(21)),
    (PartKind::Getter, "open_tabs_info", Carrier::Sidecar),
    (PartKind::Getter, "page_info", Carrier::Sidecar),
    (PartKind::Getter, "pdf_from_url", Carrier::Sidecar),
    (PartKind::Getter, "profile_name", native(19)),
    (PartKind::Getter, "rule", native(4)),
    (PartKind::Getter, "rule_relativeTime", native(190)),
    (PartKind::Getter, "shortcuts_on_desktop", native(10)),
    (PartKind::Getter, "url_dashPart", native(13)),
    (PartKind::Getter, "url_path_parse", native(26)),
    (PartKind::Getter, "vlc_config", native(5)),
    (PartKind::Getter, "vlc_playing_info", native(7)),
    (PartKind::Getter, "vm_command_error", native(11)),
    (PartKind::Getter, "vm_command_line", native(11)),
    (PartKind::Getter, "vm_file", native(19)),
    (PartKind::Getter, "vm_screen_size", native(2)),
    (PartKind::Getter, "vm_terminal_output", native(3)),
    (PartKind::Getter, "vm_wallpaper", native(4)),
    (PartKind::Getter, "vm_window_size", native(4)),
    (PartKind::Getter, "vscode_config", native(2)),
    (PartKind::Metric, "check_accessibility_tree", Carrier::Sidecar),
    (PartKind::Metric, "check_auto_saving_time", native(19)),
    (PartKind::Metric, "check_brightness_decrease_and_structure_sim", native(49)),
    (PartKind::Metric, "check_config_status", native(18)),
    (PartKind::Metric, "check_contrast_increase_and_structure_sim", native(45)),
    (PartKind::Metric, "check_csv", native(22)),
    (PartKind::Metric, "check_direct_json_object", native(38)),
    (PartKind::Metric, "check_enabled_experiments", native(6)),
    (PartKind::Metric, "check_file_exists_and_structure_sim", native(46)),
    (PartKind::Metric, "check_font_size", native(8)),
    (PartKind::Metric, "check_global_key_play_pause", native(18)),
    (PartKind::Metric, "check_gnome_favorite_apps", native(13)),
    (PartKind::Metric, "check_green_background", native(27)),
    (PartKind::Metric, "check_highlighted_words", Carrier::Sidecar),
    (PartKind::Metric, "check_history_deleted", native(8)),
    (PartKind::Metric, "check_image_file_size", native(24)),
    (PartKind::Metric, "check_image_mirror", native(43)),
    (PartKind::Metric, "check_image_size", native(29)),
    (PartKind::Metric, "check_image_stretch_and_center", native(28)),
    (PartKind::Metric, "check_include_exclude", native(21)),
    (PartKind::Metric, "check_italic_font_size_14", native(19)),
    (PartKind::Metric, "check_json", Carrier::Sidecar),
    (PartKind::Metric, "check_json_keybindings", native(12)),
    (PartKind::Metric, "check_json_settings", native(25)),
    (PartKind::Metric, "check_left_panel", native(11)),
    (PartKind::Metric, "check_line_number", native(13)),
    (PartKind::Metric, "check_list", native(25)),
    (PartKind::Metric, "check_moved_jpgs", native(9)),
    (PartKind::Metric, "check_mp3_meta", Carrier::Sidecar),
    (PartKind::Metric, "check_no_duplicates", native(45)),
    (PartKind::Metric, "check_one_instance_when_started_from_file", native(18)),
    (PartKind::Metric, "check_page_number_colors", native(37)),
    (PartKind::Metric, "check_palette_and_structure_sim", native(44)),
    (PartKind::Metric, "check_pdf_pages", Carrier::Sidecar),
    (PartKind::Metric, "check_presenter_console_disable", native(18)),
    (PartKind::Metric, "check_python_file_by_test_suite", Carrier::Sidecar),
    (PartKind::Metric, "check_qt_bgcone", native(18)),
    (PartKind::Metric, "check_qt_max_volume", native(18)),
    (PartKind::Metric, "check_qt_minimal_view", native(18)),
    (PartKind::Metric, "check_qt_slider_colours", native(16)),
    (PartKind::Metric, "check_saturation_increase_and_structure_sim", native(44)),
    (PartKind::Metric, "check_slide_orientation_Portrait", native(15)),
    (PartKind::Metric, "check_strikethrough", native(27)),
    (PartKind::Metric, "check_structure_sim", native(48)),
    (PartKind::Metric, "check_structure_sim_resized", native(51)),
    (PartKind::Metric, "check_structure_sim_with_threshold", native(58)),
    (PartKind::Metric, "check_tabstops", native(78)),
    (PartKind::Metric, "check_textbox_on_leftside", native(24)),
    (PartKind::Metric, "check_thunderbird_filter", native(18)),
    (PartKind::Metric, "check_thunderbird_folder", native(16)),
    (PartKind::Metric, "check_thunderbird_prefs", native(46)),
    (PartKind::Metric, "check_transition", native(19)),
    (PartKind::Metric, "check_triangle_position", native(23)),
    (PartKind::Metric, "compare_answer", native(8)),
    (PartKind::Metric, "compare_archive", Carrier::Sidecar),
    (PartKind::Metric, "compare_audios", Carrier::Sidecar),
    (PartKind::Metric, "compare_conference_city_in_order", native(34)),
    (PartKind::Metric, "compare_config", native(8)),
    (PartKind::Metric, "compare_contains_image", native(27)),
    (PartKind::Metric, "compare_csv", native(17)),
    (PartKind::Metric, "compare_docx_files", native(156)),
    (PartKind::Metric, "compare_docx_files_and_ignore_new_lines", native(36)),
    (PartKind::Metric, "compare_docx_images", native(74)),
    (PartKind::Metric, "compare_docx_lines", native(24)),
    (PartKind::Metric, "compare_docx_tables", native(81)),
    (PartKind::Metric, "compare_epub", Carrier::Sidecar),
    (PartKind::Metric, "compare_font_names", native(20)),
    (PartKind::Metric, "compare_highlighted_text", native(21)),
    (PartKind::Metric, "compare_htmls", Carrier::Sidecar),
    (PartKind::Metric, "compare_image_list", native(56)),
    (PartKind::Metric, "compare_images", native(59)),
    (PartKind::Metric, "compare_init_lines", native(24)),
    (PartKind::Metric, "compare_insert_equation", native(27)),
    (PartKind::Metric, "compare_line_spacing", native(50)),
    (PartKind::Metric, "compare_pdf_images", Carrier::Sidecar),
    (PartKind::Metric, "compare_pdfs", Carrier::Sidecar),
    (PartKind::Metric, "compare_pptx_files", native(354)),
    (PartKind::Metric, "compare_python_pure_text", native(13)),
    (PartKind::Metric, "compare_references", native(53)),
    (PartKind::Metric, "compare_result_files", native(20)),
    (PartKind::Metric, "compare_subscript_contains", native(36)),
    (PartKind::Metric, "compare_table", native(674)),
    (PartKind::Metric, "compare_terminal_and_txt", native(8)),
    (PartKind::Metric, "compare_text_file", native(36)),
    (PartKind::Metric, "compare_unique_train_records", native(29)),
    (PartKind::Metric, "compare_videos", Carrier::Sidecar),
    (PartKind::Metric, "compare_zip_files", native(32)),
    (PartKind::Metric, "contains_page_break", native(31)),
    (PartKind::Metric, "diff_text_file", native(17)),
    (PartKind::Metric, "evaluate_alignment", native(17)),
    (PartKind::Metric, "evaluate_colored_words_in_tables", native(32)),
    (PartKind::Metric, "evaluate_presentation_fill_to_rgb_distance", native(32)),
    (PartKind::Metric, "evaluate_spacing", native(19)),
    (PartKind::Metric, "evaluate_strike_through_last_paragraph", native(18)),
    (PartKind::Metric, "exact_match", native(15)),
    (PartKind::Metric, "file_contains", native(8)),
    (PartKind::Metric, "find_default_font", native(22)),
    (PartKind::Metric, "fuzzy_match", native(12)),
    (PartKind::Metric, "fuzzy_place_math", native(18)),
    (PartKind::Metric, "has_page_numbers_in_footers", native(22)),
    (PartKind::Metric, "infeasible", native(8)),
    (PartKind::Metric, "is_added_to_steam_cart", native(6)),
    (PartKind::Metric, "is_cookie_deleted", native(13)),
    (PartKind::Metric, "is_expected_active_tab", native(68)),
    (PartKind::Metric, "is_expected_active_tab_approximate", Carrier::Sidecar),
    (PartKind::Metric, "is_expected_bookmarks", native(17)),
    (PartKind::Metric, "is_expected_installed_extensions", native(6)),
    (PartKind::Metric, "is_expected_search_query", native(7)),
    (PartKind::Metric, "is_expected_tabs", native(12)),
    (PartKind::Metric, "is_expected_url_pattern_match", native(17)),
    (PartKind::Metric, "is_extension_installed", native(9)),
    (PartKind::Metric, "is_first_line_centered", native(17)),
    (PartKind::Metric, "is_in_list", native(10)),
    (PartKind::Metric, "is_in_vm_clickboard", native(8)),
    (PartKind::Metric, "is_included_all_json_objects", native(12)),
    (PartKind::Metric, "is_shortcut_on_desktop", native(10)),
    (PartKind::Metric, "is_utc_0", native(8)),
    (PartKind::Metric, "is_vlc_fullscreen", native(8)),
    (PartKind::Metric, "is_vlc_playing", native(39)),
    (PartKind::Metric, "is_vlc_recordings_folder", native(12)),
    (PartKind::Metric, "literal_match", native(23)),
    (PartKind::Metric, "match_in_list", native(11)),
    (PartKind::Metric, "run_sqlite3", Carrier::Sidecar),
];

/// How well a task is carried: as its worst part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All of it by this program.
    Native,
    /// Some of it by OSWorld's own code.
    Sidecar,
    /// All of it, with credentials.
    Credentials,
    /// Some of it by nobody.
    Unsupported,
}

/// Who carries a part.
pub fn carrier(part: Part) -> Carrier {
    let row = CARRIED
        .iter()
        .find(|(kind, name, _)| *kind == part.kind && *name == part.name);
    row.map_or(Carrier::None, |(_, _, carrier)| *carrier)
}

/// The parts that a task names, each once.
pub fn parts(task: &OsworldTask) -> BTreeSet<Part> {
    let part = |kind: PartKind| move |name: &'static str| Part { kind, name };
    let steps = task.steps().map(Setup::name).map(part(PartKind::Setup));
    let getters = task.getters().map(Getter::name);
    let metrics = task.metrics().into_iter();
    steps
        .chain(getters.map(part(PartKind::Getter)))
        .chain(metrics.map(part(PartKind::Metric)))
        // The flag asks for the step of the same name.
        .chain(task.proxy.then_some("proxy").map(part(PartKind::Setup)))
        .collect()
}

/// How well a task is carried.
pub fn coverage(task: &OsworldTask) -> Coverage {
    let worst = parts(task).into_iter().map(|part| match carrier(part) {
        Carrier::Native { cases: 1.. } => Coverage::Native,
        Carrier::Sidecar => Coverage::Sidecar,
        Carrier::Credentials => Coverage::Credentials,
        Carrier::Native { cases: 0 } | Carrier::None => Coverage::Unsupported,
    });
    worst.max().unwrap_or(Coverage::Native)
}

/// Whether this program alone scores a task, once somebody reads its state.
pub fn is_scored_natively(task: &OsworldTask) -> bool {
    let metrics = parts(task)
        .into_iter()
        .filter(|part| part.kind == PartKind::Metric);
    metrics
        .map(carrier)
        .all(|carrier| matches!(carrier, Carrier::Native { cases: 1.. }))
}
