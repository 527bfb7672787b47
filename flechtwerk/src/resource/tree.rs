//! Settings of resources before their types are known, as file and environment say them.

use std::collections::BTreeMap;
#[cfg(feature = "kafka")]
use std::collections::BTreeSet;
use std::fmt;
#[cfg(feature = "kafka")]
use std::path::PathBuf;

/// Settings of a resource, before their type is known.
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a run has settings"))]
#[derive(Clone, PartialEq)]
pub(crate) enum Tree {
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// Text; of the settings file, or of the environment.
    Text {
        text: String,
        in_file: bool,
    },
    List(Vec<Tree>),
    Table(BTreeMap<String, Tree>),
    /// Stands in for something that is missing, while the search for mistakes goes on.
    Nothing,
}

impl Tree {
    /// No settings.
    pub(crate) fn empty() -> Self {
        Tree::Table(BTreeMap::new())
    }

    /// Text of the environment.
    pub(crate) fn variable(text: impl Into<String>) -> Self {
        Tree::Text { text: text.into(), in_file: false }
    }

    /// Puts `value` at a path of names, in the place of what is there.
    pub(crate) fn put(&mut self, path: &[impl AsRef<str>], value: Tree) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        let first = first.as_ref();
        if let Some(index) = index(first) {
            self.split_at_commas();
            if let Tree::List(items) = self {
                return items.get_mut(index).into_iter().for_each(|item| item.put(rest, value.clone()));
            }
        }
        if !matches!(self, Tree::Table(_)) {
            *self = Tree::empty();
        }
        if let Tree::Table(table) = self {
            table.entry(first.to_owned()).or_insert_with(Tree::empty).put(rest, value);
        }
    }

    /// Takes away what is at a path of names.
    pub(super) fn remove(&mut self, path: &[String]) {
        match (self, path) {
            (Tree::Table(table), [name]) => drop(table.remove(name)),
            (Tree::Table(table), [first, rest @ ..]) => {
                table.get_mut(first).into_iter().for_each(|inner| inner.remove(rest));
            }
            (Tree::List(items), [first, rest @ ..]) => {
                let Some(index) = index(first).filter(|index| *index < items.len()) else { return };
                match rest {
                    [] => drop(items.remove(index)),
                    rest => items[index].remove(rest),
                }
            }
            _ => {}
        }
    }

    /// What is nearest to a path of names: at it, or above.
    #[cfg(feature = "kafka")]
    pub(super) fn nearest(&self, path: &[String]) -> &Tree {
        let inner = match (self, path.first()) {
            (Tree::Table(table), Some(name)) => table.get(name),
            (Tree::List(items), Some(name)) => index(name).and_then(|index| items.get(index)),
            _ => None,
        };
        inner.map_or(self, |inner| inner.nearest(&path[1..]))
    }

    /// In the environment a list is written with commas.
    pub(super) fn split_at_commas(&mut self) {
        if let Tree::Text { text, in_file: false } = self {
            *self = Tree::List(text.split(',').map(|text| Tree::variable(text.trim())).collect());
        }
    }

    /// All texts in it.
    pub(super) fn texts<'a>(&'a self, texts: &mut Vec<&'a str>) {
        match self {
            Tree::Text { text, .. } => texts.push(text),
            Tree::List(items) => items.iter().for_each(|item| item.texts(texts)),
            Tree::Table(table) => table.values().for_each(|inner| inner.texts(texts)),
            Tree::Bool(_) | Tree::Integer(_) | Tree::Float(_) | Tree::Nothing => {}
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Tree::Bool(_) => "true or false",
            Tree::Integer(_) | Tree::Float(_) => "a number",
            Tree::Text { .. } => "text",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
            Tree::Nothing => "nothing",
        }
    }
}

/// Shows the names alone: values may be secret.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Table(table) => f.debug_map().entries(table).finish(),
            other => f.write_str(other.kind()),
        }
    }
}

/// The name, in a path, of an item of a list.
pub(super) fn item_name(index: usize) -> String {
    format!("[{index}]")
}

/// See [`item_name`].
fn index(name: &str) -> Option<usize> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Everything that was said about resources.
#[cfg(feature = "kafka")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// By resource; those that nothing was said of are missing.
    pub(crate) settings: BTreeMap<String, Tree>,
    /// The settings file.
    pub(crate) file: Option<PathBuf>,
    /// Something was said of all resources that could not be read.
    pub(crate) unread: bool,
    /// The same of single ones.
    pub(crate) unread_of: BTreeSet<String>,
}

#[cfg(feature = "kafka")]
impl Said {
    /// The settings of one resource.
    pub(crate) fn of(&self, resource: &str) -> &Tree {
        static NOTHING: Tree = Tree::Table(BTreeMap::new());
        self.settings.get(resource).unwrap_or(&NOTHING)
    }

    /// What is missing of a resource may have been said, and reported as unreadable.
    pub(super) fn is_whole(&self, resource: &str) -> bool {
        !self.unread && !self.unread_of.contains(resource)
    }
}
