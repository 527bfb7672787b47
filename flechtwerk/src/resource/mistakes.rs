//! All mistakes in the settings of a resource, where serde stops at the first.
//!
//! A type can be asked again with something else in the place of what it refused. So the settings are read until nothing new is
//! refused: what is wrong or missing is replaced by one stand-in after the other until one will do, and what there should not be is
//! taken away. What the type then says about stand-ins, and about what encloses them, is nobody's mistake and not told. Where no
//! stand-in will do the search ends with what it has: at worst, some mistakes are told at the next start.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::misfit::{Kind, Misfit};
use super::settings::Deserializer;
use super::tree::Tree;

/// What most types of settings can be read from, the likeliest first.
const TEXTS: [&str; 13] = [
    "1",
    "0",
    "true",
    "1s",
    "text",
    "localhost:1",
    "127.0.0.1",
    "127.0.0.1:1",
    "http://localhost/",
    "1970-01-01T00:00:00Z",
    "1970-01-01",
    "00:00:00",
    "00000000-0000-0000-0000-000000000000",
];
/// Of a list that stands in: a tuple takes no other length than its own.
const MOST_ITEMS: usize = 4;
/// A type without an end, which no settings could be of, would be asked for ever.
const MOST_ATTEMPTS: usize = 1000;

/// Reads settings, or tells all that is wrong with them.
pub(crate) fn read<T: DeserializeOwned>(settings: &Tree) -> Result<T, Vec<Misfit>> {
    let mut search = Search { tree: settings.clone(), tried: BTreeMap::new(), found: Vec::new() };
    for _ in 0..MOST_ATTEMPTS {
        match T::deserialize(Deserializer(search.tree.clone())) {
            Ok(read) if search.found.is_empty() => return Ok(read),
            Ok(_) => break,
            Err(misfit) => {
                if !search.go_on(misfit) {
                    break;
                }
            }
        }
    }
    Err(search.found)
}

struct Search {
    /// The settings, with stand-ins.
    tree: Tree,
    /// Where stand-ins were put, and how many.
    tried: BTreeMap<Vec<String>, usize>,
    found: Vec<Misfit>,
}

impl Search {
    /// Takes note of a mistake and mends it; false where that can't be done.
    fn go_on(&mut self, misfit: Misfit) -> bool {
        let path = misfit.path();
        if misfit.kind == Kind::NoSecret {
            let missing = self.found.iter_mut().find(|found| found.path() == path);
            if let Some(Misfit { kind: Kind::Missing { secret }, .. }) = missing {
                *secret = true;
            }
        }
        let variants = match misfit.kind {
            Kind::Wrong { variants } => variants,
            _ => &[],
        };
        let unknown = matches!(misfit.kind, Kind::Unknown { .. });
        let mut made = self.tried.keys();
        if !made.any(|made| path.starts_with(made) || made.starts_with(&path)) {
            self.found.push(misfit);
        }
        if path.is_empty() {
            // It is about all of them together, or does not say what it is about.
            return false;
        }
        let tried = self.tried.entry(path.clone()).or_default();
        *tried += 1;
        match (if unknown { None } else { stand_in(*tried - 1, variants) }, *tried) {
            (Some(stand_in), _) => self.tree.put(&path, stand_in),
            (None, 1) => self.tree.remove(&path),
            // It may be one that can be left out.
            (None, tried) if !unknown && tried == 1 + stand_ins(variants) => self.tree.remove(&path),
            _ => return false,
        }
        true
    }
}

fn stand_ins(variants: &[&str]) -> usize {
    1 + 2 * variants.len() + TEXTS.len() + 1 + MOST_ITEMS + 1
}

fn stand_in(number: usize, variants: &[&'static str]) -> Option<Tree> {
    let texts = TEXTS.len();
    let Some(number) = number.checked_sub(1) else { return Some(Tree::Nothing) };
    if let Some(variant) = variants.get(number / 2) {
        let inside = |variant: &str| Tree::Table(BTreeMap::from([(variant.to_owned(), Tree::Nothing)]));
        return Some(if number.is_multiple_of(2) { Tree::variable(*variant) } else { inside(variant) });
    }
    match number - 2 * variants.len() {
        number if number < texts => Some(Tree::variable(TEXTS[number])),
        number if number == texts => Some(Tree::empty()),
        number => {
            let items = number - texts - 1;
            (items <= MOST_ITEMS).then(|| Tree::List(vec![Tree::Nothing; items]))
        }
    }
}
