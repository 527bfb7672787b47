//! Columns under their names, without lines: easy on the eye, and on `grep`.

/// The rows under the header, each column as wide as its longest text.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}  "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn tables_have_no_trailing_spaces() {
        let text = table(&["TOPIC", "N"], [vec!["words".into(), "8".into()], vec!["a".into(), "12".into()]]);
        assert_eq!(text, "TOPIC  N\nwords  8\na      12\n");
    }
}
