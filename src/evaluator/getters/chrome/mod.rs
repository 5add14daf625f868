//! Google Chrome: what lies in its profile, what its address bar shows.
//!
//! Departs: where no Google Chrome runs, Chromium's address bar is read.

mod address_bar;
mod database;
mod preferences;

pub(super) use address_bar::{active_url, url_dash_part, url_parse, url_path_parse};
pub(super) use database::{cookies, history};
pub(super) use preferences::{
    bookmarks, data_delete, default_search_engine, enabled_experiments, extension_names,
    extension_paths, font_size, language, new_startup_page, profile_name, safe_browsing,
    safety_is_enhanced, shortcuts_on_desktop, tracking_is_refused,
};
