//! What programs tell assistive technology of their windows, as the XML that OSWorld's evaluators
//! and agents read; what the terminal in front shows.
//!
//! Source: OSWorld `desktop_env/server/main.py:_create_atspi_node` for names, namespaces and limits.
//! Departs: the cells of a table are found by where they are on the screen and not by trying half a
//! million of them, names that XML cannot have are mended, and a program that does not answer is left
//! out and does not end it all.

mod bus;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Desktop;
use super::answer::Fault;
use super::display::PATIENCE;
use bus::{Bus, Node, Rectangle};
use xml::Element;

/// For all programs together.
const LIMIT: Duration = Duration::from_secs(100);

const MAX_DEPTH: usize = 50;
const MAX_WIDTH: usize = 1024;

/// Rows and columns of a table that are told of.
const MAX_CELLS: (i32, i32) = (500, 500);

/// Of a node's name or text.
const MAX_TEXT: i32 = 1 << 20;

/// By their numbers in AT-SPI.
const STATES: [&str; 44] = [
    "invalid",
    "active",
    "armed",
    "busy",
    "checked",
    "collapsed",
    "defunct",
    "editable",
    "enabled",
    "expandable",
    "expanded",
    "focusable",
    "focused",
    "has_tooltip",
    "horizontal",
    "iconified",
    "modal",
    "multi_line",
    "multiselectable",
    "opaque",
    "pressed",
    "resizable",
    "selectable",
    "selected",
    "sensitive",
    "showing",
    "single_line",
    "stale",
    "transient",
    "vertical",
    "visible",
    "manages_descendants",
    "indeterminate",
    "required",
    "truncated",
    "animated",
    "invalid_entry",
    "supports_autocompletion",
    "selectable_text",
    "is_default",
    "visited",
    "checkable",
    "has_popup",
    "read_only",
];

/// `GET /accessibility`: the tree of all programs.
pub(super) async fn tree(State(desktop): State<Arc<Desktop>>) -> Result<Json<Value>, Fault> {
    let bus = desktop.bus().await?;
    let telling = async {
        let programs = bus.children(&Node::desktop()).await?;
        let elements = join_all(programs.iter().map(|program| element(&bus, program, 1))).await;
        let mut desktop = Element::new("desktop-frame");
        desktop.children = elements.into_iter().flatten().collect();
        zbus::Result::Ok(desktop.document())
    };
    let Ok(told) = timeout(LIMIT, telling).await else {
        let limit = LIMIT.as_secs();
        return Err(Fault::failed(format!(
            "programs told too much to end within {limit} s"
        )));
    };
    Ok(Json(json!({"AT": told.map_err(|error| failed(&error))?})))
}

/// `GET /terminal`: the text of the terminal in the window in front; null where there is none.
pub(super) async fn terminal(State(desktop): State<Arc<Desktop>>) -> Result<Json<Value>, Fault> {
    // Without accessibility nobody can tell what a terminal shows; hosts ask this one to see
    // whether the server is up.
    let output = match desktop.bus().await {
        Ok(bus) => timeout(LIMIT, terminal_text(&bus)).await.ok().flatten(),
        Err(_) => None,
    };
    Ok(Json(json!({"output": output, "status": "success"})))
}

async fn terminal_text(bus: &Bus) -> Option<String> {
    for program in bus.children(&Node::desktop()).await.ok()? {
        for window in bus.children(&program).await.unwrap_or_default() {
            let states = bus.states(&window).await.unwrap_or_default();
            if states.contains(&"active")
                && let Some(terminal) = find(bus, window, "terminal", 0).await
            {
                let text = bus.text(&terminal).await.ok()?;
                return Some(text.trim_end().to_owned());
            }
        }
    }
    None
}

/// The first node of a role.
fn find<'a>(bus: &'a Bus, node: Node, role: &'a str, depth: usize) -> BoxFuture<'a, Option<Node>> {
    async move {
        if bus.role(&node).await.ok()? == role {
            return Some(node);
        }
        if depth == MAX_DEPTH {
            return None;
        }
        for child in bus.children(&node).await.ok()? {
            if let Some(found) = find(bus, child, role, depth + 1).await {
                return Some(found);
            }
        }
        None
    }
    .boxed()
}

impl Desktop {
    /// The bus that programs tell of themselves on.
    async fn bus(&self) -> Result<Bus, Fault> {
        // Where there is no session's bus, the display says where the other one is.
        let named = self
            .display
            .ask(PATIENCE, |session| session.root_text("AT_SPI_BUS"))
            .await;
        Bus::open(named.ok().flatten().as_deref())
            .await
            .map_err(|error| failed(&error))
    }
}

fn failed(error: &zbus::Error) -> Fault {
    Fault::failed(format!(
        "accessibility cannot be asked, is at-spi2-core running in this session? {error}"
    ))
}

/// A node and all below it; none where its program does not answer.
fn element<'a>(bus: &'a Bus, node: &'a Node, depth: usize) -> BoxFuture<'a, Option<Element>> {
    async move {
        let (role, name, states, attributes, interfaces) = futures::try_join!(
            bus.role(node),
            bus.name(node),
            bus.states(node),
            bus.attributes(node),
            bus.interfaces(node),
        )
        .ok()?;
        let mut element = Element::new(&role);
        element.attribute("", "name", name);
        for state in &states {
            element.attribute("st", state, "true");
        }
        for (key, value) in attributes {
            element.attribute("attr", &key, value);
        }
        let has = |interface: &str| {
            interfaces
                .iter()
                .any(|it| it.strip_prefix("org.a11y.atspi.") == Some(interface))
        };
        let is_seen = states.contains(&"visible") && states.contains(&"showing");
        let mut place = None;
        if is_seen && has("Component") {
            place = bus.extents(node).await.ok();
        }
        if let Some(Rectangle {
            x,
            y,
            width,
            height,
        }) = place
        {
            element.attribute("cp", "screencoord", format!("({x}, {y})"));
            element.attribute("cp", "size", format!("({width}, {height})"));
        }
        if has("Text") {
            element.text = bus.text(node).await.unwrap_or_default();
        }
        for (interface, key) in [("Image", "image"), ("Selection", "selection")] {
            if has(interface) {
                element.attribute("", key, "true");
            }
        }
        if has("Value") {
            for (key, value) in bus.values(node).await {
                element.attribute("val", key, value);
            }
        }
        if has("Action") {
            for (name, description, binding) in bus.actions(node).await.unwrap_or_default() {
                element.attribute("act", &format!("{name}_desc"), description);
                element.attribute("act", &format!("{name}_kb"), binding);
            }
        }
        if depth < MAX_DEPTH {
            let children = match (states.contains(&"manages_descendants"), place) {
                (true, Some(place)) if has("Table") => bus.cells(node, place).await,
                (true, _) if has("Table") => Ok(Vec::new()),
                _ => bus.children(node).await,
            };
            for child in children.unwrap_or_default().iter().take(MAX_WIDTH) {
                element
                    .children
                    .extend(self::element(bus, child, depth + 1).await);
            }
        }
        Some(element)
    }
    .boxed()
}
