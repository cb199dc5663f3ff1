//! What a migration's SQL does, as far as `migrations check` has to know: words and marks, without comments and texts.

/// One statement: its words in capitals and its marks, texts and quoted names left out.
pub(crate) type Statement = Vec<Token>;

/// A word, a mark, or something in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A keyword, name or number, in capitals.
    Word(String),
    /// A text or a quoted name; what is in it is of no concern.
    Quoted,
    Mark(char),
}

impl Token {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found == word)
    }
}

/// Takes SQL apart. A trigger is one statement, with all it does.
pub(crate) fn parse(sql: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut statement = Statement::new();
    let mut blocks = 0_usize;
    for token in tokens(sql) {
        if token == Token::Mark(';') && blocks == 0 {
            statements.push(std::mem::take(&mut statement));
            continue;
        }
        if creates(&statement, "TRIGGER") {
            match &token {
                Token::Word(word) if word == "BEGIN" || word == "CASE" => blocks += 1,
                Token::Word(word) if word == "END" => blocks = blocks.saturating_sub(1),
                _ => {}
            }
        }
        statement.push(token);
    }
    statements.push(statement);
    statements.retain(|statement| !statement.is_empty());
    statements
}

/// Why a migration must not contain this statement.
pub(crate) fn objections(statement: &[Token]) -> Vec<String> {
    let mut found: Vec<String> = words(statement).filter_map(objection_to_word).map(String::from).collect();
    found.extend(objections_to_sequence(statement).map(String::from));
    found.extend(objection_to_start(statement));
    if creates(statement, "TABLE") {
        for word in outside_parentheses(statement) {
            match word {
                "AS" => found.push("CREATE TABLE .. AS rebuilds a table".into()),
                "STRICT" => found.push("SQLite before 3.37 cannot open a database with a STRICT table".into()),
                _ => {}
            }
        }
    }
    found
}

fn objection_to_word(word: &str) -> Option<&'static str> {
    match word {
        "DROP" => Some("DROP loses what was there"),
        "RENAME" => Some("RENAME takes a name away from older programs"),
        _ => None,
    }
}

fn objections_to_sequence(statement: &[Token]) -> impl Iterator<Item = &'static str> {
    statement.iter().zip(statement.iter().skip(1).map(Some).chain([None])).filter_map(|(token, next)| {
        let followed_by = |word: &str| next.is_some_and(|next| next.is(word));
        match token {
            // `ON DELETE ..` of a foreign key and `AFTER DELETE` of a trigger are not followed by FROM.
            Token::Word(word) if word == "DELETE" && followed_by("FROM") => Some("DELETE loses rows"),
            // `replace(text, from, to)` is a function.
            Token::Word(word) if word == "REPLACE" && next != Some(&Token::Mark('(')) => {
                Some("REPLACE deletes the row that is in its way")
            }
            _ => None,
        }
    })
}

fn objection_to_start(statement: &[Token]) -> Option<String> {
    let mut words = words(statement);
    match words.next()? {
        "PRAGMA" => {
            let name = words.next().unwrap_or_default();
            let known = ["USER_VERSION", "APPLICATION_ID"].contains(&name);
            (!known).then(|| format!("PRAGMA {} has no place in a migration", name.to_lowercase()))
        }
        "TRUNCATE" => Some("TRUNCATE loses rows".into()),
        "VACUUM" => Some("VACUUM rebuilds the file".into()),
        word @ ("ATTACH" | "DETACH") => Some(format!("{word} reaches for another database")),
        word @ ("BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE") => {
            Some(format!("{word} breaks the one transaction that all migrations share"))
        }
        _ => None,
    }
}

/// Whether a statement begins with `CREATE [TEMP] what`.
fn creates(statement: &[Token], what: &str) -> bool {
    let mut words = statement.iter().filter(|token| !token.is("TEMP") && !token.is("TEMPORARY"));
    words.next().is_some_and(|token| token.is("CREATE")) && words.next().is_some_and(|token| token.is(what))
}

fn words(statement: &[Token]) -> impl Iterator<Item = &str> {
    statement.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.as_str()),
        Token::Quoted | Token::Mark(_) => None,
    })
}

fn outside_parentheses(statement: &[Token]) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    statement.iter().filter_map(move |token| {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 => return Some(word.as_str()),
            _ => {}
        }
        None
    })
}

/// Words, marks and quoted things in their order; comments and blanks are gone.
fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(comment) = rest.strip_prefix("--") {
            comment.find('\n').map_or(rest.len(), |end| end + 3)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else if let Some(close) = closing(first) {
            tokens.push(Token::Quoted);
            quoted(rest, close)
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_uppercase()));
            length
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn closing(open: char) -> Option<char> {
    match open {
        '\'' | '"' | '`' => Some(open),
        '[' => Some(']'),
        _ => None,
    }
}

/// The length of a quoted thing. A doubled quote reads as two quoted things side by side, which is as good here.
fn quoted(text: &str, close: char) -> usize {
    text[1..].find(close).map_or(text.len(), |end| end + 2)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sql: &str, expected: &[&str]) {
        let found: Vec<String> = parse(sql).iter().flat_map(|statement| objections(statement)).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found:?}");
        }
    }

    #[test]
    fn adding_is_allowed() {
        check(
            "ALTER TABLE jobs ADD COLUMN origin TEXT; CREATE INDEX a ON jobs (origin) WHERE origin IS NOT NULL;",
            &[],
        );
    }

    #[test]
    fn drop_in_any_form() {
        check("DROP TABLE jobs", &["DROP"]);
        check("drop\n index if exists a;", &["DROP"]);
        check("ALTER TABLE jobs/**/DROP/**/COLUMN args;", &["DROP"]);
    }

    #[test]
    fn delete_of_rows_but_not_the_word() {
        check("DELETE FROM events WHERE 1;", &["DELETE"]);
        check("WITH old AS (SELECT 1) DELETE\nFROM events;", &["DELETE"]);
        check("CREATE TABLE a (b REFERENCES c ON DELETE SET NULL);", &[]);
    }

    #[test]
    fn rename_of_tables_and_columns() {
        check("ALTER TABLE jobs RENAME TO old; ALTER TABLE jobs RENAME COLUMN a TO b;", &["RENAME", "RENAME"]);
    }

    #[test]
    fn create_table_from_a_query() {
        check("CREATE TABLE b AS SELECT * FROM a;", &["CREATE TABLE"]);
        check("CREATE TEMP TABLE IF NOT EXISTS b AS SELECT 1;", &["CREATE TABLE"]);
        check("CREATE TABLE b (c INTEGER, d AS (c + 1), CHECK (CAST(c AS TEXT) <> ''));", &[]);
    }

    #[test]
    fn replace_of_rows_but_not_the_function() {
        check("REPLACE INTO a VALUES (1);", &["REPLACE"]);
        check("INSERT OR REPLACE INTO a VALUES (1);", &["REPLACE"]);
        check("CREATE TABLE a (b UNIQUE ON CONFLICT REPLACE);", &["REPLACE"]);
        check("UPDATE a SET b = replace(b, '-', '');", &[]);
    }

    #[test]
    fn pragmas_but_those_that_mark_the_file() {
        check("PRAGMA writable_schema = ON;", &["PRAGMA writable_schema"]);
        check("PRAGMA foreign_keys = OFF;", &["PRAGMA foreign_keys"]);
        check("PRAGMA user_version = 2; PRAGMA application_id = 7;", &[]);
    }

    #[test]
    fn what_leaves_the_transaction_or_the_file() {
        check(
            "COMMIT; BEGIN; VACUUM; ATTACH 'x' AS y; TRUNCATE jobs;",
            &["COMMIT", "BEGIN", "VACUUM", "ATTACH", "TRUNCATE"],
        );
    }

    #[test]
    fn strict_tables_but_not_the_column() {
        check("CREATE TABLE a (b TEXT) STRICT;", &["SQLite before 3.37"]);
        check("CREATE TABLE a (strict TEXT);", &[]);
    }

    #[test]
    fn comments_and_texts_say_what_they_like() {
        check("-- DROP TABLE jobs;\nSELECT 1; /* DELETE FROM jobs; */", &[]);
        check("INSERT INTO notes VALUES ('DROP it''s; DELETE FROM jobs', \"DROP\", [RENAME], `REPLACE`);", &[]);
        check("INSERT INTO notes VALUES ('-- not a comment'); DROP TABLE jobs;", &["DROP"]);
        check("SELECT '/*'; DROP TABLE jobs; SELECT '*/';", &["DROP"]);
    }

    #[test]
    fn a_trigger_is_one_statement() {
        let trigger = "CREATE TRIGGER t AFTER DELETE ON a BEGIN
            UPDATE b SET c = CASE WHEN 1 THEN 2 ELSE 3 END; SELECT 1; END;";
        assert_eq!(parse(&format!("{trigger} SELECT 1;")).len(), 2);
        check(trigger, &[]);
        check("CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END;", &["DELETE"]);
    }

    #[test]
    fn an_unfinished_text_ends_with_the_file() {
        check("SELECT 'no end; DROP TABLE jobs", &[]);
        check("/* no end; DROP TABLE jobs", &[]);
    }
}
