//! Licence expressions: `MIT OR Apache-2.0`, `(A OR B) AND C`, `A WITH exception`, and the old `MIT/Apache-2.0`.

/// Whether a choice among the licences of this expression needs allowed ones only. An error says what can't be read.
pub fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let result = parser.any()?;
    match parser.words {
        [] => Ok(result),
        [word, ..] => Err(format!("unexpected {word:?} in {expression:?}")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    /// AND binds closer than OR.
    fn any(&mut self) -> Result<bool, String> {
        let mut result = self.all()?;
        while self.take("OR") {
            result |= self.all()?;
        }
        Ok(result)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Ok(result)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let result = self.any()?;
            return if self.take(")") { Ok(result) } else { Err("a parenthesis is not closed".into()) };
        }
        let licence = self.word()?;
        if self.take("WITH") {
            let exception = self.word()?;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(licence))
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.words {
            [word, rest @ ..] if !["OR", "AND", "WITH", "(", ")"].contains(word) => {
                self.words = rest;
                Ok(word)
            }
            [word, ..] => Err(format!("{word:?} stands where a licence should")),
            [] => Err("a licence is missing at the end".into()),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(expression: &str) -> Result<bool, String> {
        is_allowed(expression, &|licence| ["MIT", "Apache-2.0", "Unicode-3.0"].contains(&licence))
    }

    #[test]
    fn one_choice_of_all_its_parts_must_be_allowed() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND GPL-2.0", true),
            ("(MIT OR GPL-3.0) AND GPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", false),
        ] {
            assert_eq!(allowed(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for expression in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR", "MIT)"] {
            assert!(allowed(expression).is_err(), "{expression}");
        }
    }
}
