//! The metrics that exist, what each takes, and finding one by name.
//!
//! How a metric scores is the evaluator's business. Source: OSWorld as in
//! `assets/osworld/README.md`, what `desktop_env/evaluators/metrics/__init__.py` imports; the
//! parameters are those of the functions.

use serde_json::{Map, Value};

use super::names::nearest;
use super::{Getter, TaskFault};

use Expectation::{Needed, Nothing, Optional};

/// Whether a metric holds what is seen against something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It takes no expectation.
    Nothing,
    /// It takes one or none.
    Optional,
    /// It takes one.
    Needed,
}

/// What a metric is called and takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in task files.
    pub name: &'static str,
    /// Whether it takes an expectation.
    pub expected: Expectation,
    /// Names of its options.
    pub options: &'static [&'static str],
}

/// Options in OSWorld's files that no metric reads, and why they may stand there.
pub const IGNORED_OPTIONS: [(&str, &str, &str); 3] = [
    ("compare_pptx_files", "_note", "for people"),
    (
        "compare_pptx_files",
        "examine_shape_lenient_height",
        "OSWorld's function has no such switch",
    ),
    (
        "compare_references",
        "content_only",
        "OSWorld's function has no such switch",
    ),
];

const fn metric(
    name: &'static str,
    expected: Expectation,
    options: &'static [&'static str],
) -> Metric {
    Metric {
        name,
        expected,
        options,
    }
}

/// All, by name. `infeasible` is the metric that is none.
#[rustfmt::skip]
pub const METRICS: [Metric; 139] = [
    metric("check_accessibility_tree", Needed, &["osname"]),
    metric("check_auto_saving_time", Needed, &[]),
    metric("check_brightness_decrease_and_structure_sim", Needed, &["threshold"]),
    metric("check_config_status", Needed, &[]),
    metric("check_contrast_increase_and_structure_sim", Needed, &[]),
    metric("check_csv", Needed, &[]),
    metric("check_direct_json_object", Needed, &[]),
    metric("check_enabled_experiments", Needed, &[]),
    metric("check_file_exists", Needed, &[]),
    metric("check_file_exists_and_structure_sim", Needed, &[]),
    metric("check_font_size", Needed, &[]),
    metric("check_global_key_play_pause", Needed, &[]),
    metric("check_gnome_favorite_apps", Needed, &[]),
    metric("check_green_background", Needed, &[]),
    metric("check_highlighted_words", Needed, &[]),
    metric("check_history_deleted", Needed, &[]),
    metric("check_html_background_image", Optional, &[]),
    metric("check_image_file_size", Needed, &[]),
    metric("check_image_mirror", Needed, &[]),
    metric("check_image_size", Needed, &[]),
    metric("check_image_stretch_and_center", Needed, &[]),
    metric("check_include_exclude", Needed, &[]),
    metric("check_italic_font_size_14", Needed, &[]),
    metric("check_json", Needed, &["is_yaml"]),
    metric("check_json_keybindings", Needed, &[]),
    metric("check_json_settings", Needed, &[]),
    metric("check_left_panel", Nothing, &[]),
    metric("check_libre_locale", Needed, &[]),
    metric("check_line_number", Needed, &[]),
    metric("check_list", Needed, &[]),
    metric("check_moved_jpgs", Needed, &[]),
    metric("check_mp3_meta", Needed, &[]),
    metric("check_no_duplicates", Needed, &[]),
    metric("check_one_instance_when_started_from_file", Needed, &[]),
    metric("check_page_number_colors", Needed, &[]),
    metric("check_palette_and_structure_sim", Needed, &[]),
    metric("check_pdf_pages", Needed, &[]),
    metric("check_play_and_exit", Needed, &[]),
    metric("check_presenter_console_disable", Nothing, &[]),
    metric("check_python_file_by_gold_file", Needed, &[]),
    metric("check_python_file_by_test_suite", Needed, &["test_function_name"]),
    metric("check_qt_bgcone", Needed, &[]),
    metric("check_qt_max_volume", Needed, &[]),
    metric("check_qt_minimal_view", Needed, &[]),
    metric("check_qt_slider_colours", Needed, &[]),
    metric("check_saturation_increase_and_structure_sim", Needed, &[]),
    metric("check_sharper", Needed, &[]),
    metric("check_slide_numbers_color", Nothing, &[]),
    metric("check_slide_orientation_Portrait", Nothing, &[]),
    metric("check_strikethrough", Needed, &[]),
    metric("check_structure_sim", Needed, &[]),
    metric("check_structure_sim_resized", Needed, &[]),
    metric("check_structure_sim_with_threshold", Needed, &["ssim_threshold"]),
    metric("check_tabstops", Needed, &["index", "word_number_split_by_tabstop"]),
    metric("check_text_enlarged", Nothing, &[]),
    metric("check_textbox_on_leftside", Nothing, &[]),
    metric("check_thunderbird_filter", Needed, &[]),
    metric("check_thunderbird_folder", Needed, &["remove_deleted", "remove_duplicate"]),
    metric("check_thunderbird_prefs", Needed, &[]),
    metric("check_transition", Needed, &[]),
    metric("check_triangle_position", Nothing, &[]),
    metric("compare_answer", Needed, &[]),
    metric("compare_archive", Needed, &["file_path", "file_type"]),
    metric("compare_audios", Needed, &[]),
    metric("compare_conference_city_in_order", Needed, &[]),
    metric("compare_config", Needed, &["containment_ok"]),
    metric("compare_contains_image", Needed, &[]),
    metric("compare_csv", Needed, &["ignore_case", "strict"]),
    metric("compare_docx_files", Needed, &["content_only", "delete_empty_lines", "fuzzy_match", "ignore_blanks", "ignore_case", "ignore_order"]),
    metric("compare_docx_files_and_ignore_new_lines", Needed, &["ignore_blanks"]),
    metric("compare_docx_images", Needed, &[]),
    metric("compare_docx_lines", Needed, &[]),
    metric("compare_docx_tables", Needed, &[]),
    metric("compare_epub", Needed, &[]),
    metric("compare_font_names", Needed, &[]),
    metric("compare_highlighted_text", Needed, &[]),
    metric("compare_htmls", Needed, &["ignore_sdnum"]),
    metric("compare_image_list", Needed, &[]),
    metric("compare_image_text", Needed, &[]),
    metric("compare_images", Needed, &["reference_base_result"]),
    metric("compare_init_lines", Needed, &[]),
    metric("compare_insert_equation", Needed, &[]),
    metric("compare_line_spacing", Needed, &[]),
    metric("compare_pdf_images", Needed, &[]),
    metric("compare_pdfs", Needed, &[]),
    metric("compare_pptx_files", Needed, &["approximately_tolerance", "enable_debug", "examine_alignment", "examine_background_color", "examine_bullets", "examine_color_rgb", "examine_font_bold", "examine_font_italic", "examine_font_name", "examine_font_size", "examine_font_underline", "examine_image_size", "examine_indent", "examine_modify_height", "examine_note", "examine_number_of_slides", "examine_right_position", "examine_run_count", "examine_shape", "examine_shape_for_shift_size", "examine_strike_through", "examine_table_bottom_position", "examine_text", "examine_title_bottom_position", "examine_top_position"]),
    metric("compare_python_pure_text", Needed, &[]),
    metric("compare_references", Needed, &["reference_base_result", "reference_indicator"]),
    metric("compare_result_files", Needed, &[]),
    metric("compare_subscript_contains", Needed, &[]),
    metric("compare_table", Optional, &["rules"]),
    metric("compare_terminal_and_txt", Needed, &[]),
    metric("compare_text_file", Needed, &["ignore_blanks", "ignore_case"]),
    metric("compare_time_in_speedtest_results", Needed, &[]),
    metric("compare_triangle_positions", Needed, &[]),
    metric("compare_unique_train_records", Needed, &[]),
    metric("compare_videos", Needed, &["max_frames_to_check", "threshold"]),
    metric("compare_zip_files", Needed, &[]),
    metric("contains_page_break", Needed, &[]),
    metric("decrease_brightness", Needed, &[]),
    metric("diff_text_file", Needed, &[]),
    metric("evaluate_alignment", Nothing, &[]),
    metric("evaluate_colored_words_in_tables", Needed, &["threshold"]),
    metric("evaluate_conversion", Nothing, &[]),
    metric("evaluate_presentation_fill_to_rgb_distance", Needed, &[]),
    metric("evaluate_spacing", Nothing, &[]),
    metric("evaluate_strike_through_last_paragraph", Needed, &[]),
    metric("exact_match", Needed, &[]),
    metric("file_contains", Needed, &[]),
    metric("find_default_font", Needed, &[]),
    metric("fuzzy_match", Needed, &[]),
    metric("fuzzy_place_math", Needed, &[]),
    metric("get_unique_train_ids", Nothing, &[]),
    metric("has_page_numbers_in_footers", Nothing, &[]),
    metric("increase_saturation", Needed, &[]),
    metric("infeasible", Nothing, &[]),
    metric("is_added_to_steam_cart", Needed, &[]),
    metric("is_cookie_deleted", Needed, &[]),
    metric("is_expected_active_tab", Needed, &[]),
    metric("is_expected_active_tab_approximate", Needed, &[]),
    metric("is_expected_bookmarks", Needed, &[]),
    metric("is_expected_installed_extensions", Needed, &[]),
    metric("is_expected_search_query", Needed, &[]),
    metric("is_expected_tabs", Needed, &[]),
    metric("is_expected_url_pattern_match", Needed, &[]),
    metric("is_extension_installed", Needed, &[]),
    metric("is_first_line_centered", Nothing, &[]),
    metric("is_gold_text_included_in_pdf", Needed, &[]),
    metric("is_in_list", Needed, &[]),
    metric("is_in_vm_clickboard", Needed, &[]),
    metric("is_included_all_json_objects", Needed, &[]),
    metric("is_shortcut_on_desktop", Needed, &[]),
    metric("is_utc_0", Nothing, &[]),
    metric("is_vlc_fullscreen", Needed, &[]),
    metric("is_vlc_playing", Needed, &[]),
    metric("is_vlc_recordings_folder", Needed, &[]),
    metric("literal_match", Needed, &["ignore_case", "type"]),
    metric("match_in_list", Needed, &[]),
    metric("run_sqlite3", Needed, &[]),
];

impl Metric {
    /// The metric of a name; `key` is where in the file it stands.
    pub(super) fn find(name: &str, key: &str) -> Result<&'static Self, TaskFault> {
        METRICS
            .iter()
            .find(|metric| metric.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
                let nearest = nearest(name, &names);
                let reason =
                    format!("no metric is called {name:?}; the nearest name is {nearest:?}");
                TaskFault::new(key, reason)
            })
    }

    /// Whether it can be called with this expectation; `key` is where that stands or should.
    pub(super) fn check_expected(
        &self,
        expected: Option<&Getter>,
        key: &str,
    ) -> Result<(), TaskFault> {
        let reason = match (self.expected, expected) {
            (Needed, None) => "no getter; say what the metric compares with",
            (Nothing, Some(_)) => "the metric compares with nothing; leave it out",
            (Needed | Optional, Some(_)) | (Nothing | Optional, None) => return Ok(()),
        };
        Err(TaskFault::new(key, format!("{}: {reason}", self.name)))
    }

    /// Whether it reads these options; `key` is where they stand.
    pub(super) fn check_options(
        &self,
        options: &Map<String, Value>,
        key: &str,
    ) -> Result<(), TaskFault> {
        let is_known = |option: &str| {
            let ignored =
                |(metric, name, _): &(&str, &str, &str)| *metric == self.name && *name == option;
            self.options.contains(&option) || IGNORED_OPTIONS.iter().any(ignored)
        };
        let Some(unknown) = options.keys().find(|option| !is_known(option)) else {
            return Ok(());
        };
        let hint = match self.options {
            [] => "it has none".to_owned(),
            known => format!("the nearest one is {:?}", nearest(unknown, known)),
        };
        let reason = format!("{} has no such option; {hint}", self.name);
        Err(TaskFault::new(format!("{key}.{unknown}"), reason))
    }
}
