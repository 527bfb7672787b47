//! Collects mistakes, so that all of an attribute are reported together.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::Error;

/// Mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// A mistake that is shown at all of `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// A mistake that is shown at `span`.
    pub(crate) fn span(&mut self, span: Span, message: impl Display) {
        self.push(Error::new(span, message));
    }

    /// Takes the last mistake out, as a `compile_error!`.
    pub(crate) fn take_one(&mut self) -> TokenStream {
        let mut all: Vec<Error> = self.0.take().into_iter().flatten().collect();
        let one = all.pop();
        all.into_iter().for_each(|error| self.push(error));
        one.map(|error| error.to_compile_error()).unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().flat_map(|error| error.clone().into_iter()).count()
    }

    /// Adds all of `others`.
    pub(crate) fn append(&mut self, others: Errors) {
        if let Some(error) = others.0 {
            self.push(error);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The mistakes as `compile_error!`s; nothing if there are none.
    pub(crate) fn to_tokens(&self) -> TokenStream {
        self.0.as_ref().map(Error::to_compile_error).unwrap_or_default()
    }
}

/// The known word that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (distance(word, known), known.len() - common(word, known), known))
        .filter(|(distance, _, known)| *distance <= known.len().div_ceil(3))
        .min()
        .map(|(_, _, known)| known)
}

/// How many letters are the same at the front.
fn common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// How many letters must be added, removed or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["inputs", "start", "state", "name", "key"];
        assert_eq!(nearest("input", known), Some("inputs"));
        assert_eq!(nearest("stat", known), Some("state"));
        assert_eq!(nearest("kye", known), None);
        assert_eq!(nearest("ky", known), Some("key"));
        assert_eq!(nearest("partitions", known), None);
    }
}
