//! Checks of a pipeline's resources: what is needed is listed, once, and can be made in some order. Pipelines have few of
//! them, so each is simply compared with each.

use super::super::{ListedResource, Need, ResourceInfo, Share, StageInfo};
use super::text::{Message, same};

/// A resource in a list of which `cfg` may have removed some; `ordinal` is its place among all that were written.
#[derive(Clone, Copy)]
pub struct ResourceEntry {
    pub ordinal: usize,
    pub listed: ListedResource,
}

/// A resource that the stage needs and the pipeline does not list.
pub(super) const fn missing(stage: &StageInfo, entries: &[ResourceEntry]) -> Option<Need> {
    let mut n = 0;
    while n < stage.shared.len() {
        if let Share::Resource(need) = stage.shared[n]
            && place(entries, need.id) == entries.len()
        {
            return Some(need);
        }
        n += 1;
    }
    None
}

/// The index of a resource; the number of all if it is not there.
const fn place(entries: &[ResourceEntry], id: &str) -> usize {
    let mut n = 0;
    while n < entries.len() && !same(entries[n].listed.info.id, id) {
        n += 1;
    }
    n
}

/// Fails the compilation if the resource that was written at this place has a fault.
#[track_caller]
pub const fn resource(entries: &[ResourceEntry], ordinal: usize) {
    let mut index = 0;
    while entries[index].ordinal != ordinal {
        index += 1;
    }
    let info = entries[index].listed.info;
    let mut n = 0;
    while n < index {
        let earlier = entries[n].listed.info;
        if same(earlier.id, info.id) {
            Message::new()
                .add("resource `")
                .add(info.id)
                .add("` is listed twice, and a process makes it once: remove one")
                .panic();
        }
        if same(earlier.name, info.name) {
            Message::new()
                .add("resources `")
                .add(earlier.id)
                .add("` and `")
                .add(info.id)
                .add("` are both named `")
                .add(info.name)
                .add("`, and would share the settings `[resources.")
                .add(info.name)
                .add("]`: give one of them a `name = \"..\"`")
                .panic();
        }
        n += 1;
    }
    needs(entries, info);
    if first_on_cycle(entries, index) {
        cycle(entries, index);
    }
}

#[track_caller]
const fn needs(entries: &[ResourceEntry], info: &ResourceInfo) {
    let mut n = 0;
    while n < info.needs.len() {
        let need = info.needs[n];
        if place(entries, need.id) == entries.len() {
            Message::new()
                .add("resource `")
                .add(info.name)
                .add("` is made from a `Res<")
                .add(need.type_name)
                .add(">`, which the pipeline does not make: add `")
                .add(need.id)
                .add("` to `resources`")
                .panic();
        }
        n += 1;
    }
}

/// The next resource on a way from `from` that leads to `to`, or the number of all.
const fn step(entries: &[ResourceEntry], from: usize, to: usize) -> usize {
    let needs = entries[from].listed.info.needs;
    let mut n = 0;
    while n < needs.len() {
        let next = place(entries, needs[n].id);
        if next < entries.len() && (next == to || reaches(entries, next, to, entries.len())) {
            return next;
        }
        n += 1;
    }
    entries.len()
}

/// Whether a way of at most so many steps leads from one resource to another.
const fn reaches(entries: &[ResourceEntry], from: usize, to: usize, steps: usize) -> bool {
    // Breadth first, over bits: there are never more than 64 resources.
    let (mut seen, mut left) = (1_u64 << from, steps);
    while left > 0 {
        let mut next = seen;
        let mut n = 0;
        while n < entries.len() {
            if seen >> n & 1 == 1 {
                let needs = entries[n].listed.info.needs;
                let mut m = 0;
                while m < needs.len() {
                    let needed = place(entries, needs[m].id);
                    if needed == to {
                        return true;
                    }
                    if needed < entries.len() {
                        next |= 1 << needed;
                    }
                    m += 1;
                }
            }
            n += 1;
        }
        seen = next;
        left -= 1;
    }
    false
}

/// A cycle is one mistake, so it is told at one of its resources: the one that is listed first.
const fn first_on_cycle(entries: &[ResourceEntry], index: usize) -> bool {
    if !reaches(entries, index, index, entries.len()) {
        return false;
    }
    let mut n = 0;
    while n < index {
        if reaches(entries, n, index, entries.len()) && reaches(entries, index, n, entries.len()) {
            return false;
        }
        n += 1;
    }
    true
}

#[track_caller]
const fn cycle(entries: &[ResourceEntry], index: usize) -> ! {
    let mut message =
        Message::new().add("resources are made from each other: `").add(entries[index].listed.info.name);
    let (mut at, mut left) = (index, entries.len());
    while left > 0 {
        at = step(entries, at, index);
        message = message.add("` needs `").add(entries[at].listed.info.name);
        if at == index {
            break;
        }
        left -= 1;
    }
    message.add("`, so none can be the first: take one of these parameters away").panic()
}
