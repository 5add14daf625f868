//! Chrome's databases: cookies, history.
//!
//! Departs: bytes, of which JSON has none, are an object with their hex digits.

use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::env::RealDesktop;
use crate::evaluator::found::Found;
use crate::evaluator::getters::{GetterError, files};

/// `get_cookie_data`: all there is of each cookie.
pub(in crate::evaluator::getters) async fn cookies(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let path = "~/.config/google-chrome/Default/Cookies";
    rows(desktop, path, "SELECT * FROM cookies").await
}

/// `get_history`: address, title and time of each.
pub(in crate::evaluator::getters) async fn history(
    desktop: RealDesktop<'_>,
) -> Result<Found, GetterError> {
    let path = "~/.config/google-chrome/Default/History";
    rows(
        desktop,
        path,
        "SELECT url, title, last_visit_time FROM urls",
    )
    .await
}

/// What a question gives of a database; nothing where there is none or it is broken.
async fn rows(
    desktop: RealDesktop<'_>,
    path: &str,
    question: &'static str,
) -> Result<Found, GetterError> {
    let Some(bytes) = files::read(desktop, path).await? else {
        return Ok(Found::NOTHING);
    };
    let asked = tokio::task::spawn_blocking(move || ask(&bytes, question)).await;
    let rows = asked.ok().and_then(Result::ok);
    Ok(Found::Value(rows.map_or(Value::Null, Value::Array)))
}

/// Why a database does not answer; nobody looks at it.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// SQLite reads files only: the database lies in one, alone, while it is asked.
fn ask(bytes: &[u8], question: &str) -> Result<Vec<Value>, Broken> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("database");
    std::fs::write(&path, bytes)?;
    // It may be written to, as there: one that was cut off while Chrome wrote it is mended.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(&path, flags)?;
    let mut statement = database.prepare(question)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|column| Ok(cell(row.get_ref(column)?)?));
        found.push(Value::Array(cells.collect::<Result<_, Broken>>()?));
    }
    Ok(found)
}

fn cell(value: ValueRef<'_>) -> Result<Value, std::str::Utf8Error> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => std::str::from_utf8(text)?.into(),
        ValueRef::Blob(bytes) => {
            let mut hex = String::new();
            for byte in bytes {
                let _ = write!(hex, "{byte:02x}");
            }
            json!({ "hex": hex })
        }
    })
}
