//! Tables: columns side by side without lines around them, as wide as the terminal, or as the content where there is none.

use std::io::IsTerminal;

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::Value;

use super::{Tint, plain};

/// An empty table with these headings.
#[must_use]
pub(crate) fn with_headings(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        // One row is one line for whoever reads this.
        table.set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    }
    if console::colors_enabled() {
        table.enforce_styling();
    }
    table.set_header(headings.iter().map(|heading| Tint::Quiet.cell(heading)));
    table
}

/// The table as lines, blanks at their ends cut off; the first column is never wrapped.
#[must_use]
pub(crate) fn lines(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index == 0 {
            // What identifies a row must be there in one piece.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.trim_fmt()
}

/// What the broker tells of its workers.
#[must_use]
pub(crate) fn workers(rows: &[Value]) -> String {
    const COLUMNS: [(&str, &str); 6] = [
        ("WORKER", "name"),
        ("SERVICE", "service"),
        ("STATUS", "status"),
        ("ALIVE (S)", "alive (s)"),
        ("HOLDTIME (S)", "holdtime"),
        ("KEEPALIVES TX/RX", "keepalives tx/rx"),
    ];
    let mut table = with_headings(&COLUMNS.map(|(heading, _)| heading));
    for row in rows {
        table.add_row(COLUMNS.map(|(_, key)| {
            let text = match row.get(key) {
                Some(Value::String(text)) => plain(text),
                None | Some(Value::Null) => String::new(),
                Some(other) => plain(&other.to_string()),
            };
            match (key, text.as_str()) {
                ("status", "alive") => Tint::Good.cell(text),
                ("status", _) => Tint::Bad.cell(text),
                _ => Cell::new(text),
            }
        }));
    }
    lines(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn workers_side_by_side() {
        let rows = [
            json!({"name": "w1", "service": "dummy", "status": "alive", "holdtime": "1.8", "alive (s)": 22}),
            json!({"name": "w2\u{1b}", "service": "other", "status": "dead"}),
        ];
        let shown = workers(&rows);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["w1", "dummy", "alive", "22", "1.8"]);
        assert_eq!(lines[2], ["w2\\u{1b}", "other", "dead"]);
        assert!(shown.starts_with("WORKER"), "{shown}");
    }
}
