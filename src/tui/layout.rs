//! How much a terminal of a given size shows. Nothing is ever refused: the smaller, the less.

/// What fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// One line: the state.
    Line,
    /// A handful of figures, one a line.
    Vitals,
    /// A list, no second pane.
    List,
    /// One pane at a time, shortened.
    Narrow,
    /// All panes.
    Full,
    /// All panes, and room for a large picture beside them.
    Wide,
}

impl SizeClass {
    /// The class of a terminal of `columns` x `rows` cells.
    pub fn of(columns: u16, rows: u16) -> Self {
        match (columns, rows) {
            (110.., 30..) => SizeClass::Wide,
            (80.., 22..) => SizeClass::Full,
            (60.., 16..) => SizeClass::Narrow,
            (40.., 10..) => SizeClass::List,
            (20.., 4..) => SizeClass::Vitals,
            _ => SizeClass::Line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SizeClass;

    #[test]
    fn classes_follow_the_smaller_side() {
        for (columns, rows, class) in [
            (0, 0, SizeClass::Line),
            (1, 1, SizeClass::Line),
            (20, 4, SizeClass::Vitals),
            (200, 5, SizeClass::Vitals),
            (40, 10, SizeClass::List),
            (79, 24, SizeClass::Narrow),
            (80, 24, SizeClass::Full),
            (120, 24, SizeClass::Full),
            (120, 40, SizeClass::Wide),
        ] {
            assert_eq!(SizeClass::of(columns, rows), class, "{columns}x{rows}");
        }
    }
}
