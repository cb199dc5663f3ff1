//! Tables: columns side by side without lines around them. A row is a line always; where the terminal is too narrow, texts
//! take a shorter form, lose their ends or are left out, in an order that each column tells.

use std::cmp::Reverse;

use serde_json::Value;

use super::{Stream, Tint, plain};

/// How much room a line has: as many characters as the terminal is wide, or any number where stdout is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Whoever reads it takes lines of any length.
    Endless,
    /// This many characters.
    Characters(usize),
}

impl Room {
    /// The room that stdout has now.
    #[must_use]
    pub(crate) fn of_stdout() -> Self {
        console::Term::stdout().size_checked().map_or(Self::Endless, |(_, columns)| Self::Characters(columns.into()))
    }

    /// What is left of it behind so many characters.
    #[must_use]
    pub(crate) fn behind(self, characters: usize) -> Self {
        match self {
            Self::Endless => Self::Endless,
            Self::Characters(all) => Self::Characters(all.saturating_sub(characters)),
        }
    }

    /// Whether so many characters have their place in it.
    #[must_use]
    pub(crate) fn holds(self, characters: usize) -> bool {
        match self {
            Self::Endless => true,
            Self::Characters(all) => characters <= all,
        }
    }
}

/// A column, and what may become of it where there is little room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    /// It may lose its end down to this width.
    least: usize,
    /// It may be left out, the lowest number first.
    leaves: Option<u8>,
}

impl Column {
    /// A column whose texts are there in one piece.
    #[must_use]
    pub(crate) const fn whole(heading: &'static str) -> Self {
        Self { heading, least: usize::MAX, leaves: None }
    }

    /// A column whose texts may lose their ends down to a width.
    #[must_use]
    pub(crate) const fn shortened(heading: &'static str, least: usize) -> Self {
        Self { heading, least, leaves: None }
    }

    /// It may be left out where room is short, before those with a higher number.
    #[must_use]
    pub(crate) const fn leaves(self, order: u8) -> Self {
        Self { leaves: Some(order), ..self }
    }
}

/// A text in a table: its forms, the longest first, and its colour.
#[derive(Debug)]
pub(crate) struct Cell {
    forms: Vec<String>,
    tint: Option<Tint>,
}

impl Cell {
    /// A text of one form.
    #[must_use]
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::of_forms([text.into()])
    }

    /// A text of several forms, the longest first.
    #[must_use]
    pub(crate) fn of_forms(forms: impl Into<Vec<String>>) -> Self {
        // A row is a line, whatever stands in it.
        let forms = forms.into().into_iter().map(|form| form.replace(['\n', '\t'], " ")).collect();
        Self { forms, tint: None }
    }

    /// In a colour.
    #[must_use]
    pub(crate) fn tinted(self, tint: Tint) -> Self {
        Self { tint: Some(tint), ..self }
    }

    fn form(&self, brevity: usize) -> &str {
        self.forms.get(brevity).or(self.forms.last()).map_or("", String::as_str)
    }
}

/// Columns and rows.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// The blanks between two columns.
const GAP: usize = 2;

/// How a table is laid out: which form its texts have, and the width of each column that stays.
#[derive(Debug)]
struct Layout {
    brevity: usize,
    widths: Vec<Option<usize>>,
}

impl Layout {
    fn total(&self) -> usize {
        let shown: Vec<usize> = self.widths.iter().flatten().copied().collect();
        shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row: a cell a column.
    pub(crate) fn add(&mut self, row: impl Into<Vec<Cell>>) {
        self.rows.push(row.into());
    }

    /// The headings and the rows, a line each, without blanks at the ends.
    #[must_use]
    pub(crate) fn lines(&self, room: Room) -> String {
        let layout = self.layout(room);
        let headings = self.columns.iter().map(|column| (column.heading, Some(Tint::Quiet)));
        let mut lines = vec![line(headings, &layout)];
        for row in &self.rows {
            lines.push(line(row.iter().map(|cell| (cell.form(layout.brevity), cell.tint)), &layout));
        }
        lines.join("\n")
    }

    /// The layout that keeps the most: shorter forms go before shortened texts, and these before columns left out.
    fn layout(&self, room: Room) -> Layout {
        let briefest = self.rows.iter().flatten().map(|cell| cell.forms.len()).max().unwrap_or(1).saturating_sub(1);
        let mut leaving: Vec<usize> = (0..self.columns.len()).filter(|at| self.columns[*at].leaves.is_some()).collect();
        leaving.sort_by_key(|at| Reverse(self.columns[*at].leaves));
        let mut left_out = Vec::new();
        loop {
            for brevity in 0..=briefest {
                let layout = self.natural(brevity, &left_out);
                if room.holds(layout.total()) {
                    return layout;
                }
            }
            let mut layout = self.natural(briefest, &left_out);
            if self.shorten(&mut layout, room) {
                return layout;
            }
            match leaving.pop() {
                Some(column) => left_out.push(column),
                // Narrower than what must be there: the terminal breaks the lines.
                None => return layout,
            }
        }
    }

    /// Every column as wide as its widest text.
    fn natural(&self, brevity: usize, left_out: &[usize]) -> Layout {
        let width = |at: usize, column: &Column| {
            let texts = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.form(brevity));
            texts.chain([column.heading]).map(console::measure_text_width).max().unwrap_or(0)
        };
        let columns = self.columns.iter().enumerate();
        let widths = columns.map(|(at, column)| (!left_out.contains(&at)).then(|| width(at, column))).collect();
        Layout { brevity, widths }
    }

    /// Takes from the widest of the columns that may lose their ends, until there is room enough; false if there never is.
    fn shorten(&self, layout: &mut Layout, room: Room) -> bool {
        while !room.holds(layout.total()) {
            let columns = layout.widths.iter_mut().zip(&self.columns);
            let wide = columns.filter_map(|(width, column)| {
                let width = width.as_mut()?;
                (*width > column.least.max(column.heading.len())).then_some(width)
            });
            match wide.max_by_key(|width| **width) {
                Some(width) => *width -= 1,
                None => return false,
            }
        }
        true
    }
}

fn line<'a>(texts: impl Iterator<Item = (&'a str, Option<Tint>)>, layout: &Layout) -> String {
    let mut line = String::new();
    // Blanks that a further text needs before it, so that no line ends in blanks.
    let mut blanks = 0;
    for ((text, tint), width) in texts.zip(&layout.widths) {
        let Some(width) = *width else { continue };
        let text = console::truncate_str(text, width, "…");
        let missing = width.saturating_sub(console::measure_text_width(&text));
        if !text.is_empty() {
            line.extend(std::iter::repeat_n(' ', blanks));
            blanks = 0;
            match tint {
                Some(tint) => line.push_str(&tint.on(Stream::Stdout, text).to_string()),
                None => line.push_str(&text),
            }
        }
        blanks += missing + GAP;
    }
    line
}

/// What the broker tells of its workers.
#[must_use]
pub(crate) fn workers(rows: &[Value], room: Room) -> String {
    const COLUMNS: [(Column, &str); 6] = [
        (Column::whole("WORKER"), "name"),
        (Column::shortened("SERVICE", 8), "service"),
        (Column::whole("STATUS"), "status"),
        (Column::whole("ALIVE (S)").leaves(3), "alive (s)"),
        (Column::whole("HOLDTIME (S)").leaves(2), "holdtime"),
        (Column::whole("KEEPALIVES TX/RX").leaves(1), "keepalives tx/rx"),
    ];
    let mut table = Table::new(COLUMNS.map(|(column, _)| column));
    for row in rows {
        table.add(COLUMNS.map(|(_, key)| {
            let text = match row.get(key) {
                Some(Value::String(text)) => plain(text),
                None | Some(Value::Null) => String::new(),
                Some(other) => plain(&other.to_string()),
            };
            match (key, text.as_str()) {
                ("status", "alive") => Cell::new(text).tinted(Tint::Good),
                ("status", _) => Cell::new(text).tinted(Tint::Bad),
                _ => Cell::new(text),
            }
        }));
    }
    table.lines(room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> Table {
        let columns = [
            Column::whole("ID"),
            Column::shortened("TEXT", 6),
            Column::whole("AT").leaves(2),
            Column::whole("MORE").leaves(1),
        ];
        let mut table = Table::new(columns);
        let at = |long: &str, brief: &str| Cell::of_forms([long.to_owned(), brief.to_owned()]);
        table.add([Cell::new("1234567890"), Cell::new("twelve chars"), at("12:00 (now)", "now"), Cell::new("m")]);
        table.add([Cell::new("2"), Cell::new("two\nlines"), at("13:00 (in 1 h)", "in 1 h"), Cell::new("")]);
        table
    }

    #[track_caller]
    fn check(room: Room, lines: [&str; 3]) {
        let shown = table().lines(room);
        let shown = console::strip_ansi_codes(&shown);
        assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn all_of_it_where_there_is_room() {
        let all = [
            "ID          TEXT          AT              MORE",
            "1234567890  twelve chars  12:00 (now)     m",
            "2           two lines     13:00 (in 1 h)",
        ];
        check(Room::Endless, all);
        check(Room::Characters(46), all);
    }

    #[test]
    fn shorter_forms_first_then_shortened_texts_then_fewer_columns() {
        let brief = [
            "ID          TEXT          AT      MORE",
            "1234567890  twelve chars  now     m",
            "2           two lines     in 1 h",
        ];
        check(Room::Characters(45), brief);
        check(Room::Characters(38), brief);
        let shortened =
            ["ID          TEXT    AT      MORE", "1234567890  twelv…  now     m", "2           two l…  in 1 h"];
        check(Room::Characters(32), shortened);
        let fewer = ["ID          TEXT     AT", "1234567890  twelve…  now", "2           two li…  in 1 h"];
        check(Room::Characters(27), fewer);
        check(Room::Characters(24), ["ID          TEXT", "1234567890  twelve chars", "2           two lines"]);
    }

    #[test]
    fn what_identifies_a_row_stays_whole() {
        check(Room::Characters(5), ["ID          TEXT", "1234567890  twelv…", "2           two l…"]);
    }

    #[test]
    fn workers_side_by_side() {
        let rows = [
            json!({"name": "w1", "service": "dummy", "status": "alive", "holdtime": "1.8", "alive (s)": 22}),
            json!({"name": "w2\u{1b}", "service": "other", "status": "dead"}),
        ];
        let shown = workers(&rows, Room::Endless);
        let shown = console::strip_ansi_codes(&shown);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["w1", "dummy", "alive", "22", "1.8"]);
        assert_eq!(lines[2], ["w2\\u{1b}", "other", "dead"]);
        assert!(shown.starts_with("WORKER"), "{shown}");
        let narrow = workers(&rows, Room::Characters(40));
        assert!(!narrow.contains("HOLDTIME") && narrow.contains("ALIVE"), "{narrow}");
    }
}
