//! AT-SPI over D-Bus: the few questions that a tree is made of.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::wire::{DynamicType, Type};
use zbus::{Connection, OwnedObjectPath, OwnedVariant, connection};

use super::{MAX_CELLS, MAX_TEXT, STATES};

/// For one answer: a program that is busy for longer is left out.
const PATIENCE: Duration = Duration::from_secs(5);

/// Coordinates are of the screen, not of the window.
const OF_SCREEN: u32 = 0;

/// Between an edge and what is surely within.
const INSET: i32 = 3;

/// The connection to the bus of assistive technology.
pub(super) struct Bus(Connection);

/// An object of a program.
#[derive(Clone, Debug)]
pub(super) struct Node {
    program: String,
    path: String,
}

impl Node {
    /// What programs are the children of.
    pub(super) fn desktop() -> Self {
        Self {
            program: "org.a11y.atspi.Registry".to_owned(),
            path: "/org/a11y/atspi/accessible/root".to_owned(),
        }
    }

    fn of((program, path): (String, OwnedObjectPath)) -> Self {
        let path = path.as_str().to_owned();
        Self { program, path }
    }
}

/// A part of the screen, pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

impl Bus {
    /// By the session's bus, or by the address that the display bears.
    pub(super) async fn open(named: Option<&str>) -> zbus::Result<Self> {
        let address = match Self::address_of_session().await {
            Ok(address) => address,
            Err(error) => named.ok_or(error)?.to_owned(),
        };
        let builder = connection::Builder::address(address.as_str());
        Ok(Self(builder.method_timeout(PATIENCE).build().await?))
    }

    async fn address_of_session() -> zbus::Result<String> {
        let session = connection::Builder::session()
            .method_timeout(PATIENCE)
            .build()
            .await?;
        let (bus, path) = ("org.a11y.Bus", "/org/a11y/bus");
        let reply = session
            .call_method(Some(bus), path, Some(bus), "GetAddress", &())
            .await?;
        reply.body().deserialize()
    }

    async fn ask<T: DeserializeOwned + Type>(
        &self,
        node: &Node,
        interface: &str,
        method: &str,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> zbus::Result<T> {
        let interface = format!("org.a11y.atspi.{interface}");
        let (program, path) = (node.program.as_str(), node.path.as_str());
        let asked = self
            .0
            .call_method(Some(program), path, Some(interface), method, arguments);
        asked.await?.body().deserialize()
    }

    async fn property<T>(&self, node: &Node, interface: &str, name: &str) -> zbus::Result<T>
    where
        T: TryFrom<OwnedVariant, Error: Into<zbus::Error>>,
    {
        let properties = "org.freedesktop.DBus.Properties";
        let (program, path) = (node.program.as_str(), node.path.as_str());
        let arguments = (format!("org.a11y.atspi.{interface}"), name);
        let asked = self
            .0
            .call_method(Some(program), path, Some(properties), "Get", &arguments);
        let value: OwnedVariant = asked.await?.body().deserialize()?;
        T::try_from(value).map_err(Into::into)
    }

    pub(super) async fn children(&self, node: &Node) -> zbus::Result<Vec<Node>> {
        let children: Vec<_> = self.ask(node, "Accessible", "GetChildren", &()).await?;
        Ok(children.into_iter().map(Node::of).collect())
    }

    pub(super) async fn role(&self, node: &Node) -> zbus::Result<String> {
        self.ask(node, "Accessible", "GetRoleName", &()).await
    }

    pub(super) async fn name(&self, node: &Node) -> zbus::Result<String> {
        self.property(node, "Accessible", "Name").await
    }

    pub(super) async fn states(&self, node: &Node) -> zbus::Result<Vec<&'static str>> {
        let bits: Vec<u32> = self.ask(node, "Accessible", "GetState", &()).await?;
        let is_set = |number: usize| {
            bits.get(number / 32)
                .is_some_and(|it| it >> (number % 32) & 1 == 1)
        };
        let set = STATES
            .iter()
            .enumerate()
            .filter(|(number, _)| is_set(*number));
        Ok(set.map(|(_, name)| *name).collect())
    }

    pub(super) async fn attributes(&self, node: &Node) -> zbus::Result<BTreeMap<String, String>> {
        self.ask(node, "Accessible", "GetAttributes", &()).await
    }

    pub(super) async fn interfaces(&self, node: &Node) -> zbus::Result<Vec<String>> {
        self.ask(node, "Accessible", "GetInterfaces", &()).await
    }

    pub(super) async fn extents(&self, node: &Node) -> zbus::Result<Rectangle> {
        let asked = self.ask(node, "Component", "GetExtents", &OF_SCREEN);
        let (x, y, width, height): (i32, i32, i32, i32) = asked.await?;
        Ok(Rectangle {
            x,
            y,
            width,
            height,
        })
    }

    /// Without what stands for pictures and the like.
    pub(super) async fn text(&self, node: &Node) -> zbus::Result<String> {
        let length: i32 = self.property(node, "Text", "CharacterCount").await?;
        let range = (0, length.min(MAX_TEXT));
        let text: String = self.ask(node, "Text", "GetText", &range).await?;
        Ok(text.replace(['\u{fffc}', '\u{fffd}'], ""))
    }

    /// As Python writes them.
    pub(super) async fn values(&self, node: &Node) -> Vec<(&'static str, String)> {
        let mut values = Vec::new();
        for (key, property) in [
            ("value", "CurrentValue"),
            ("min", "MinimumValue"),
            ("max", "MaximumValue"),
            ("step", "MinimumIncrement"),
        ] {
            if let Ok(value) = self.property::<f64>(node, "Value", property).await {
                values.push((key, format!("{value:?}")));
            }
        }
        values
    }

    /// Name, description and key of each.
    pub(super) async fn actions(&self, node: &Node) -> zbus::Result<Vec<(String, String, String)>> {
        self.ask(node, "Action", "GetActions", &()).await
    }

    /// The cells of a table that are on the screen, row by row.
    pub(super) async fn cells(&self, table: &Node, place: Rectangle) -> zbus::Result<Vec<Node>> {
        let columns: i32 = self.property(table, "Table", "NColumns").await?;
        let (left, top) = (place.x.max(0), place.y.max(0));
        let (right, bottom) = (place.x + place.width, place.y + place.height);
        let first = self
            .cell_at(table, left + INSET, top + INSET, columns)
            .await?;
        let last = self
            .cell_at(table, right - INSET, bottom - INSET, columns)
            .await?;
        let rows = first.0..=last.0.min(first.0 + MAX_CELLS.0);
        let columns = first.1..=last.1.min(first.1 + MAX_CELLS.1);
        let mut cells = Vec::new();
        for row in rows {
            for column in columns.clone() {
                let at = (row, column);
                let cell = self.ask(table, "Table", "GetAccessibleAt", &at).await?;
                cells.push(Node::of(cell));
            }
        }
        Ok(cells)
    }

    /// Row and column of the cell at a place.
    async fn cell_at(
        &self,
        table: &Node,
        x: i32,
        y: i32,
        columns: i32,
    ) -> zbus::Result<(i32, i32)> {
        let at = (x, y, OF_SCREEN);
        let asked = self.ask(table, "Component", "GetAccessibleAtPoint", &at);
        let cell = Node::of(asked.await?);
        let index: i32 = self
            .ask(&cell, "Accessible", "GetIndexInParent", &())
            .await?;
        let columns = columns.max(1);
        Ok((index / columns, index % columns))
    }
}
