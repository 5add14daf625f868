//! Metrics: from what getters found to a score, by the names that task files use.
//!
//! Pure functions: nothing here reads a desktop, a disk or a clock. A function of OSWorld's name
//! scores as OSWorld's does, and raises where that raises, which is no score; where it leaves it
//! on purpose, its description says so after `Departs:`. Source: `desktop_env/evaluators/metrics`
//! of desktop-env 1.0.2; cases are in `tests/it/fixtures/differential`.

mod address;
mod chrome;
mod config;
mod docx;
mod image;
mod json;
mod likeness;
mod package;
mod pattern;
pub(super) mod python;
mod rule;
mod simulated;
mod slides;
mod table;
mod text;
mod thunderbird;
mod values;
mod vlc;

use serde_json::{Map, Value};

use super::found::{Found, FoundFile};

pub(super) use simulated::{check_result, rules, select};

/// Why there is no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// What the task file says makes no sense to the metric.
    #[error("{0}")]
    Rules(String),
    /// What was found is nothing the metric can judge: OSWorld's function raises an exception.
    #[error("cannot be judged: {0}")]
    Raised(String),
    /// Nobody could be asked: OSWorld's own code is not installed, or came to an end of its own.
    #[error("{0}")]
    Unavailable(String),
}

/// A metric: a score in [0, 1].
pub type Metric = fn(&Call<'_>) -> Result<f64, MetricError>;

/// What a metric is called with.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the desktop shows.
    pub result: &'a Found,
    /// What that is held against; nothing where the metric takes nothing.
    pub expected: &'a Found,
    /// Named arguments.
    pub options: &'a Map<String, Value>,
}

/// All metrics by name.
#[rustfmt::skip]
const METRICS: &[(&str, Metric)] = &[
    ("check_auto_saving_time", config::check_auto_saving_time),
    ("check_brightness_decrease_and_structure_sim", image::check_brightness_decrease_and_structure_sim),
    ("check_config_status", config::check_config_status),
    ("check_contrast_increase_and_structure_sim", image::check_contrast_increase_and_structure_sim),
    ("check_csv", text::check_csv),
    ("check_direct_json_object", json::check_direct_json_object),
    ("check_enabled_experiments", chrome::check_enabled_experiments),
    ("check_file_exists_and_structure_sim", image::check_file_exists_and_structure_sim),
    ("check_font_size", chrome::check_font_size),
    ("check_global_key_play_pause", vlc::check_global_key_play_pause),
    ("check_gnome_favorite_apps", values::check_gnome_favorite_apps),
    ("check_green_background", image::check_green_background),
    ("check_history_deleted", chrome::check_history_deleted),
    ("check_image_file_size", image::check_image_file_size),
    ("check_image_mirror", image::check_image_mirror),
    ("check_image_size", image::check_image_size),
    ("check_image_stretch_and_center", slides::check_image_stretch_and_center),
    ("check_include_exclude", values::check_include_exclude),
    ("check_italic_font_size_14", docx::check_italic_font_size_14),
    ("check_json_keybindings", json::check_json_keybindings),
    ("check_json_settings", json::check_json_settings),
    ("check_left_panel", slides::check_left_panel),
    ("check_line_number", text::check_line_number),
    ("check_list", text::check_list),
    ("check_moved_jpgs", values::check_moved_jpgs),
    ("check_no_duplicates", docx::check_no_duplicates),
    ("check_one_instance_when_started_from_file", vlc::check_one_instance_when_started_from_file),
    ("check_page_number_colors", slides::check_page_number_colors),
    ("check_palette_and_structure_sim", image::check_palette_and_structure_sim),
    ("check_presenter_console_disable", config::check_presenter_console_disable),
    ("check_qt_bgcone", vlc::check_qt_bgcone),
    ("check_qt_max_volume", vlc::check_qt_max_volume),
    ("check_qt_minimal_view", vlc::check_qt_minimal_view),
    ("check_qt_slider_colours", vlc::check_qt_slider_colours),
    ("check_saturation_increase_and_structure_sim", image::check_saturation_increase_and_structure_sim),
    ("check_slide_orientation_Portrait", slides::check_slide_orientation_portrait),
    ("check_strikethrough", slides::check_strikethrough),
    ("check_structure_sim", image::check_structure_sim),
    ("check_structure_sim_resized", image::check_structure_sim_resized),
    ("check_structure_sim_with_threshold", image::check_structure_sim_with_threshold),
    ("check_tabstops", docx::check_tabstops),
    ("check_textbox_on_leftside", image::check_textbox_on_leftside),
    ("check_thunderbird_filter", thunderbird::check_thunderbird_filter),
    ("check_thunderbird_folder", thunderbird::check_thunderbird_folder),
    ("check_thunderbird_prefs", thunderbird::check_thunderbird_prefs),
    ("check_transition", slides::check_transition),
    ("check_triangle_position", image::check_triangle_position),
    ("compare_answer", values::compare_answer),
    ("compare_conference_city_in_order", table::compare_conference_city_in_order),
    ("compare_config", text::compare_config),
    ("compare_contains_image", docx::compare_contains_image),
    ("compare_csv", text::compare_csv),
    ("compare_docx_files", docx::compare_docx_files),
    ("compare_docx_files_and_ignore_new_lines", docx::compare_docx_files_and_ignore_new_lines),
    ("compare_docx_images", docx::compare_docx_images),
    ("compare_docx_lines", docx::compare_docx_lines),
    ("compare_docx_tables", docx::compare_docx_tables),
    ("compare_font_names", docx::compare_font_names),
    ("compare_highlighted_text", docx::compare_highlighted_text),
    ("compare_image_list", image::compare_image_list),
    ("compare_images", image::compare_images),
    ("compare_init_lines", docx::compare_init_lines),
    ("compare_insert_equation", docx::compare_insert_equation),
    ("compare_line_spacing", docx::compare_line_spacing),
    ("compare_pptx_files", slides::compare_pptx_files),
    ("compare_python_pure_text", text::compare_python_pure_text),
    ("compare_references", docx::compare_references),
    ("compare_result_files", text::compare_result_files),
    ("compare_subscript_contains", docx::compare_subscript_contains),
    ("compare_table", table::compare_table),
    ("compare_terminal_and_txt", text::compare_terminal_and_txt),
    ("compare_text_file", text::compare_text_file),
    ("compare_unique_train_records", docx::compare_unique_train_records),
    ("compare_zip_files", docx::compare_zip_files),
    ("contains_page_break", docx::contains_page_break),
    ("diff_text_file", text::diff_text_file),
    ("evaluate_alignment", docx::evaluate_alignment),
    ("evaluate_colored_words_in_tables", docx::evaluate_colored_words_in_tables),
    ("evaluate_presentation_fill_to_rgb_distance", slides::evaluate_presentation_fill_to_rgb_distance),
    ("evaluate_spacing", docx::evaluate_spacing),
    ("evaluate_strike_through_last_paragraph", docx::evaluate_strike_through_last_paragraph),
    ("exact_match", values::exact_match),
    ("file_contains", text::file_contains),
    ("find_default_font", config::find_default_font),
    ("fuzzy_match", values::fuzzy_match),
    ("fuzzy_place_math", docx::fuzzy_place_math),
    ("has_page_numbers_in_footers", docx::has_page_numbers_in_footers),
    ("is_added_to_steam_cart", chrome::is_added_to_steam_cart),
    ("is_cookie_deleted", address::is_cookie_deleted),
    ("is_expected_active_tab", address::is_expected_active_tab),
    ("is_expected_bookmarks", chrome::is_expected_bookmarks),
    ("is_expected_installed_extensions", chrome::is_expected_installed_extensions),
    ("is_expected_search_query", chrome::is_expected_search_query),
    ("is_expected_tabs", address::is_expected_tabs),
    ("is_expected_url_pattern_match", chrome::is_expected_url_pattern_match),
    ("is_extension_installed", values::is_extension_installed),
    ("is_first_line_centered", docx::is_first_line_centered),
    ("is_in_list", values::is_in_list),
    ("is_in_vm_clickboard", values::is_in_vm_clickboard),
    ("is_included_all_json_objects", json::is_included_all_json_objects),
    ("is_shortcut_on_desktop", chrome::is_shortcut_on_desktop),
    ("is_utc_0", values::is_utc_0),
    ("is_vlc_fullscreen", vlc::is_vlc_fullscreen),
    ("is_vlc_playing", vlc::is_vlc_playing),
    ("is_vlc_recordings_folder", vlc::is_vlc_recordings_folder),
    ("literal_match", values::literal_match),
    ("match_in_list", values::match_in_list),
    ("state_match", simulated::state_match),
];

/// The metric of a name.
pub fn find(name: &str) -> Result<Metric, MetricError> {
    let found = METRICS.iter().find(|(known, _)| *known == name);
    found.map(|(_, metric)| *metric).ok_or_else(|| {
        let known: Vec<&str> = METRICS.iter().map(|(known, _)| *known).collect();
        let known = known.join(", ");
        MetricError::Rules(format!("no metric is called {name:?}; there are {known}"))
    })
}

/// 1 or 0.
fn score(is_met: bool) -> f64 {
    f64::from(u8::from(is_met))
}

impl<'a> Call<'a> {
    /// What the desktop shows, as a value.
    fn value(&self) -> Result<&'a Value, MetricError> {
        value_of(self.result, "result")
    }

    /// What that is held against, as a value.
    fn rules(&self) -> Result<&'a Value, MetricError> {
        value_of(self.expected, "expected")
    }

    /// The file on the desktop, none where there is none.
    fn file(&self) -> Result<Option<&'a FoundFile>, MetricError> {
        file_of(self.result, "result")
    }

    /// The file it is held against, none where there is none.
    fn expected_file(&self) -> Result<Option<&'a FoundFile>, MetricError> {
        file_of(self.expected, "expected")
    }

    /// The text of the file on the desktop, none where there is none.
    fn text(&self) -> Result<Option<String>, MetricError> {
        let file = self.file()?;
        file.map(|file| python::read_text(&file.bytes)).transpose()
    }

    /// The text of the file it is held against.
    fn expected_text(&self) -> Result<String, MetricError> {
        let missing = || python::raised("there is no file to compare with");
        let file = self.expected_file()?.ok_or_else(missing)?;
        python::read_text(&file.bytes)
    }

    /// Whether an option is on; off unless given.
    fn is_on(&self, option: &str) -> bool {
        self.options.get(option).is_some_and(python::is_true)
    }
}

fn value_of<'a>(found: &'a Found, role: &str) -> Result<&'a Value, MetricError> {
    match found {
        Found::Value(value) => Ok(value),
        Found::File(_) | Found::Many(_) => Err(MetricError::Rules(format!(
            "{role:?} is a file; the metric takes a value"
        ))),
    }
}

fn file_of<'a>(found: &'a Found, role: &str) -> Result<Option<&'a FoundFile>, MetricError> {
    match found {
        Found::File(file) => Ok(Some(file)),
        Found::Value(Value::Null) => Ok(None),
        Found::Value(_) | Found::Many(_) => Err(MetricError::Rules(format!(
            "{role:?} is no file; the metric takes one"
        ))),
    }
}
